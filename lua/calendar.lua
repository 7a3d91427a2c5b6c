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
--        it is, and drop it when a period begins. Limits with these set the expiry each minute,
--        and in place of when that was set is when the key last changed.
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
  call('SET', key, '\4\0\0\0\0\0\0\0' .. bytes('>I7I7I7I8', start, stop, math.max(set, clock), used) .. sub(state, 38), 'PX', lifetime(stop))
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
--- reads tells
--- sets base begun entry epoch past told whole
local told, begun, past, epoch, base, whole, entry = 0, nil, nil, nil, nil, nil, nil
if tells > 0 then
  --- insert behind
end
--- behind
--- reads ledger number start state sub
--- sets base begun entry epoch past told whole
-- Reads what follows the count.
told, begun, past, epoch, base, whole, entry = 0, 0, '', start, 0, 0, ledger
if state and #state > 37 then
  told = number('>I7', state, 38)
  if #state > 44 then
    begun, past = number('>I7', state, 45), sub(state, 52)
  end
end
if #past > 0 then
  local newest, began, flags, units = number('>I7I7I1I7', past, 1)
  if newest >= began then
    epoch, base, whole, entry, past = began, flags > 1 and -units or units, flags % 2, true, sub(past, 23)
  end
end
--- over (past)
--- reads begun bytes clock keep ledger param past start stop sub used window
--- sets base begin begun entry epoch kept past told whole
local begin, kept = 0, ''
if keep > 0 then
  begin = clock < param and param - window or param
  if start then
    --- insert behind
    --- insert entry
    kept = bytes('>I7I7I8', begun, stop, used) .. past
    begin = math.max(begin, stop)
  end
end
told, begun, past, epoch, base, whole, entry = 0, begin, sub(kept, 1, keep * 22), nil, 0, 0, ledger
--- entry
--- reads base bytes entry epoch past set whole
--- sets past
if entry then
  past = bytes('>I7I7I1I7', set, epoch, whole + (base < 0 and 2 or 0), math.abs(base)) .. past
end
--- shares (past)
--- insert find shares
--- write (past)
--- reads bytes call clock key ledger life lifetime minute number passed set state
--- reads stop used
--- sets set
if state == '' or passed > 0 or ledger and set < minute and (#state < 73 or number('>I7', state, 52) < number('>I7', state, 59)) then
  --- insert write whole
else
  local renews = set < minute -- or nobody would, if somebody has removed the expiry
  set = set < clock and clock or set + 1
  call('SETRANGE', key, '22', bytes('>I7I8', set, used))
  if renews then
    call('PEXPIRE', key, lifetime(stop + life))
  end
end
--- write whole
--- reads begun bytes call clock entry epoch key life lifetime param past set
--- reads start stop told used window
--- sets begun behind epoch set
if not past then
  --- insert behind
end
set = set < clock and clock or set + 1
if entry then
  epoch, begun = epoch or start, begun > 0 and begun or stop == param and param - window or start
end
--- insert entry
local behind = begun > 0 and bytes('>I7I7', told, begun) .. past or told > 0 and bytes('>I7', told) or ''
call('SET', key, '\4\0\0\0\0\0\0\0' .. bytes('>I7I7I7I8', start, stop, set, used) .. behind, 'PX', lifetime(stop + life))
--- told shares (past)
--- insert tell shares
--- recall (past)
--- reads base begun epoch keep ledger number operation past set stop used whole
--- sets former
if keep > 0 and operation == 'peek' then
  if not past then
    --- insert behind
  end
  former = { begun, stop, #past / 22 }
  if ledger then
    former = { begun, stop, #past / 22, used, set, epoch or 0, whole, base }
  end
  for i = 1, #past, 22 do
    local n = #former
    former[n + 1], former[n + 2], former[n + 3] = number('>I7I7I8', past, i)
    if ledger then
      former[n + 4], former[n + 3] = number('>I1I7', past, i + 14)
    end
  end
end
--- renew (past)
--- reads at base call clock cost epoch held key past used whole
--- sets asked base charging cost delay expected held reset retry room start used
--- sets whole
local expected, asked, charging, room, retry, reset, delay = at, cost, false, nil, nil, nil, nil
cost = 0
--- insert ends
--- insert look
if not past then
  --- insert behind
end
if asked == 0 and not reset and past == '' then
  call('UNLINK', key)
elseif asked == 0 and reset then
  start, base, whole, used, held = clock, base - used, 1, 0, 1
elseif asked < 0 and whole == 0 and (epoch or 1) == expected then
  base, whole, used, held = base - asked, 1, math.min(used - asked, 9007199254740991), 1
end
if held > 0 then
  --- insert write whole
  --- insert stay
end
