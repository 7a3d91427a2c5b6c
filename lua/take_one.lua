-- Decides one call that has one limit and stands for itself, as most calls are when few
-- come at a time. It does the same as take.lua, without what only more calls need.
--
-- KEYS   that of the limit
-- ARGV   "take", with "check " before it as in take.lua; window max param more mode, which
--        are those of take.lua; the cost; and the weight and tenant, as there
-- REPLY  that of take.lua
local replies = {}
--- insert only key
--- insert telling
--- insert time
--- insert check
local i = 1 -- the terms begin behind it
--- insert other period

local function decide()
  --- insert prelude
  local n, key, cost, charging, times = 1, KEYS[1], ARGV[COST] + 0, true, 1
  --- insert lone claim
  --- insert term
  --- insert duration
  --- insert extra term
  --- insert past term
  local allowed, room, retry, reset, at, delay = 0, nil, nil, nil, nil, nil
  --- insert blocked
  --- insert ends
  --- insert share
  --- insert look
  --- insert refuse
  if retry then
    --- insert heal
    --- insert place
    at = 0
  --- insert free
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
--- insert tell all
return replies
