-- Fixed window that starts with its first event.
--
-- KEY    a STRING: a byte that is 4, and then numbers of 7 bytes, the highest byte
--        first: the end of a block, or 0; when the window began; until when the key
--        lives; and when that was set; and, in 8 bytes, how much of the window is used.
--        A key that holds no more than a block ends behind that.
-- CALLS  look: GET; calls in a row share one MGET. charge: SETRANGE, or SET for a new
--        window and if the expiry was set slack ago.
--- gather
--- insert strings
--- shared
--- insert numbers
--- open
--- reads kind number
--- sets set start state stop used
local state
--- insert read
local start, stop, set, used
if state then
  local kind, ended
  --- insert whole state
    kind, ended, start, stop, set, used = number('>I1I7I7I7I7I8', state, 1)
    --- insert ended
  --- insert short
  end
  if kind ~= 4 then
    error('a text of another kind')
  end
end
--- whole state
--- reads state
if #state == 37 then
--- look
--- reads clock cost max reset start used window
--- sets at reset retry room start stop used
--- insert open
at = clock
if start and start > clock + window then
  start = nil -- from before the clock stepped back, see prelude.lua
  --- insert forget
end
if start and clock < start + window then
  if start > clock then
    at = start
  end
  reset = start + window - clock
else
  start, stop, used = clock, nil, 0
end
room = max - used
if cost > room then
  retry = reset
end
--- charge
--- reads clock cost stop used
--- sets reset used
used = used + cost
if used > 9007199254740991 then
  used = 9007199254740991 -- the largest max, 2^53 - 1: a larger sum would be rounded
end
--- insert shares
--- insert write
--- insert told shares
reset = stop - clock
--- write
--- reads bytes call clock key lifetime set slack start stop used window
--- sets stop
if stop == start + window and set > clock - slack then
  call('SETRANGE', key, '29', bytes('>I8', used))
else
  stop = start + window
  call('SET', key, '\4\0\0\0\0\0\0\0' .. bytes('>I7I7I7I8', start, stop, clock, used), 'PX', lifetime(stop))
end
--- refund
--- reads at clock cost start used window
--- sets used
--- insert open
if start and at >= start and at < start + window and clock < start + window then
  used = used > cost and used - cost or 0
  --- insert write
end
--- mark
--- reads bytes ends key
--- sets written
local written = redis.pcall('SETRANGE', key, '0', '\4' .. bytes('>I7', ends))
--- drop
--- insert unmark
