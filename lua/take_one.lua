-- Decides one call that has one limit and stands for itself, as most calls are when few
-- come at a time. KEYS, ARGV and the reply are those of take.lua. It does the same as
-- that, without what only more calls need.
local replies = {}
--- insert time
--- insert check

local function decide()
  --- insert prelude
  local which, n, key, cost, charging, times = 1, 1, KEYS[1], ARGV[10] + 0, true, 1
  --- insert term
  --- insert duration
  local allowed, room, retry, reset, at, delay = 0, nil, nil, nil, nil, nil
  --- insert blocked
  --- insert ends
  --- insert share
  --- insert look
  --- insert deny
  if retry then
    --- insert heal
    at = 0
  else
    allowed = 1
    --- insert lift
    --- insert charge
    --- insert keep
    room = room - cost
  end
  --- insert reply
end

local ok, err = pcall(decide)
if not ok then
  --- insert failure
end
return replies
