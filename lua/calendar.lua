-- Period of the calendar: a fixed window that ends when the calendar says, and not when
-- its first event is some time old. All that is not here is that of fixed_window.lua.
--
-- KEY    that of fixed_window.lua. Until when the key lives is the end of the period. It
--        holds to the end, whatever PARAM says by then: who changes where periods begin,
--        or in which time zone, changes the next one. 7 bytes may follow: the highest share
--        of it that was told, see past.lua. With a KEEP another 7 do, when the period has
--        begun, 0 if that is not known, and 22 for each period before it in which something
--        was charged, the last one first: when that began, likewise, when it ended, and how
--        much was used. Limits without these have the same keys. They leave what follows as
--        it is, and drop it when a period begins.
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
if #state == 37 or #state == 44 or #state > 44 and #state % 22 == 7 then
--- look
--- reads clock cost max more param reset start stop used window
--- sets at reset retry room set start state stop used
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
  start, stop, set, used, state = clock, clock < param and param or more, 0, 0, ''
end
room = max - used
if cost > room then
  retry = reset
end
--- write
--- reads bytes call clock key lifetime set slack start state stop sub used
if set > clock - slack then
  call('SETRANGE', key, '29', bytes('>I8', used))
else
  call('SET', key, '\4\0\0\0\0\0\0\0' .. bytes('>I7I7I7I8', start, stop, clock, used) .. sub(state, 38), 'PX', lifetime(stop))
end
--- refund
--- reads at clock cost start stop used
--- sets used
--- insert open
--- insert past
if start and at >= start and at < stop and clock < stop then
  used = used > cost and used - cost or 0
  --- insert shares
  --- insert write
  --- insert told shares
end
--- past (past)
--- reads number state sub
--- sets begun past told
local told, begun, past = 0, 0, ''
if state and #state > 37 then
  told = number('>I7', state, 38)
  if #state > 44 then
    begun, past = number('>I7', state, 45), sub(state, 52)
  end
end
--- over (past)
--- reads begun bytes clock keep param past start stop sub used window
--- sets begin begun kept past told
local begin, kept = 0, ''
if keep > 0 then
  begin = clock < param and param - window or param
  if start then
    kept = bytes('>I7I7I8', begun, stop, used) .. past
    begin = math.max(begin, stop)
  end
end
told, begun, past = 0, begin, sub(kept, 1, keep * 22)
--- shares (past)
--- insert find shares
--- write (past)
--- reads begun bytes call clock key life lifetime past set slack start stop
--- reads told used
if set > clock - slack then
  call('SETRANGE', key, '29', bytes('>I8', used) .. (told > 0 and bytes('>I7', told) or ''))
else
  local behind = begun > 0 and bytes('>I7I7', told, begun) .. past or told > 0 and bytes('>I7', told) or ''
  call('SET', key, '\4\0\0\0\0\0\0\0' .. bytes('>I7I7I7I8', start, stop, clock, used) .. behind, 'PX', lifetime(stop + life))
end
--- told shares (past)
--- insert tell shares
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
