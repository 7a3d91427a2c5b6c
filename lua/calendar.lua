-- Period of the calendar: a fixed window that ends when the calendar says, and not when
-- its first event is some time old. All that is not here is that of fixed_window.lua.
--
-- KEY    that of fixed_window.lua. Until when the key lives is the end of the period. It
--        holds to the end, whatever PARAM says by then: who changes where periods begin,
--        or in which time zone, changes the next one. With a KEEP, see past.lua, 7 bytes
--        follow, when the period has begun, 0 if that is not known, and 22 for each period
--        before it in which something was charged, the last one first: when that began,
--        likewise, when it ended, and how much was used. Limits without a KEEP have the
--        same keys, and drop what follows.
-- WINDOW how long the period is, in which the client believes the clock to be.
-- PARAM  when that ends.
-- MORE   when the period after that ends.
-- REPLY  the error PERIOD and Redis's clock, instead of any other reply, if the clock is in
--        neither: the client asks again for the periods of that time. Nothing is written.
--- period
for i = 3, ARGV[2] * SIZE - 3, SIZE do
  if ARGV[i] == 'calendar' then
    --- insert other period
  end
end
--- other period
--- reads clock i
if clock < ARGV[i + 3] - ARGV[i + 1] or clock >= ARGV[i + 4] + 0 then
  return redis.error_reply('PERIOD ' .. string.format('%.0f', clock) .. ' is the time of the server')
end
--- whole state
--- reads state
if #state == 37 or #state % 22 == 0 and #state > 22 then
--- look
--- reads clock cost max more param reset start stop used window
--- sets at reset retry room set start stop used
--- insert open
--- insert past
at = clock
if start and start > clock + window then
  start = nil -- from before the clock stepped back, see prelude.lua
  --- insert forget
end
if start and clock < stop then
  if start > clock then
    at = start
  end
  reset = stop - clock
else
  --- insert over
  start, stop, set, used = clock, clock < param and param or more, 0, 0
end
room = max - used
if cost > room then
  retry = reset
end
--- write
--- reads bytes call clock key lifetime set slack start stop used
if set > clock - slack then
  call('SETRANGE', key, '29', bytes('>I8', used))
else
  call('SET', key, '\4\0\0\0\0\0\0\0' .. bytes('>I7I7I7I8', start, stop, clock, used), 'PX', lifetime(stop))
end
--- refund
--- reads at clock cost start stop used
--- sets used
--- insert open
--- insert past
if start and at >= start and at < stop and clock < stop then
  used = used > cost and used - cost or 0
  --- insert write
end
--- past (past)
--- reads number state sub
--- sets begun past
local begun, past = 0, ''
if state and #state > 37 then
  begun, past = number('>I7', state, 38), sub(state, 45)
end
--- over (past)
--- reads begun bytes clock keep param past start stop sub used window
--- sets begin begun kept past
local begin, kept = clock < param and param - window or param, ''
if start then
  kept = bytes('>I7I7I8', begun, stop, used) .. past
  if stop > begin then
    begin = stop
  end
end
begun, past = begin, sub(kept, 1, keep * 22)
--- write (past)
--- reads begun bytes call clock keep key life lifetime past set slack start
--- reads stop used
if set > clock - slack then
  call('SETRANGE', key, '29', bytes('>I8', used))
else
  local behind = keep > 0 and bytes('>I7', begun) .. past or ''
  call('SET', key, '\4\0\0\0\0\0\0\0' .. bytes('>I7I7I7I8', start, stop, clock, used) .. behind, 'PX', lifetime(stop + life))
end
--- recall (past)
--- reads begun keep number operation past stop
--- sets former
if keep > 0 and operation == 'peek' then
  former = { begun, stop, #past / 22 }
  for i = 1, #past, 22 do
    local n = #former
    former[n + 1], former[n + 2], former[n + 3] = number('>I7I7I8', past, i)
  end
end
