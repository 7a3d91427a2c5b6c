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
--- insert read entry
--- over (past)
--- reads begun bytes clock keep param past start stop sub used window
--- sets begin begun kept past told
local begin, kept = 0, ''
if keep > 0 then
  begin = clock < param and param - window or param
  if start then
    --- insert keep entry
    kept = bytes('>I7I7I8', begun, stop, used) .. past
    begin = math.max(begin, stop)
  end
end
told, begun, past = 0, begin, sub(kept, 1, keep * 22)
--- insert begin entry
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
  --- insert recall entry
  for i = 1, #past, 22 do
    local n = #former
    former[n + 1], former[n + 2], former[n + 3] = number('>I7I7I8', past, i)
    --- insert recall entry of
  end
end
--- read entry (ledger)
--- reads number past start sub
--- sets base entry epoch past version whole
local version, epoch, base, whole, entry = start or 0, start, 0, 0, ''
if #past > 0 then
  local newest, began, flags, units = number('>I7I7I1I7', past, 1)
  if newest >= began then
    version, epoch, base, whole, entry, past = newest, began, flags > 1 and -units or units, flags % 2, sub(past, 1, 22), sub(past, 23)
  end
end
--- keep entry (ledger)
--- reads base bytes entry epoch ledger past version whole
--- sets past
past = (ledger and bytes('>I7I7I1I7', version, epoch, whole + (base < 0 and 2 or 0), math.abs(base)) or entry) .. past
--- begin entry (ledger)
--- reads start version
--- sets base entry epoch version whole
version, epoch, base, whole, entry = start and version or 0, nil, 0, 0, ''
--- write (ledger)
--- reads base begun bytes call clock entry epoch key ledger life lifetime param
--- reads past set slack start stop told used version whole window
--- sets begun entry epoch version
if ledger then
  version, epoch, begun = math.max(version + 1, clock), epoch or start, begun > 0 and begun or stop == param and param - window or start
end
if set > clock - slack and ledger and entry ~= '' then
  call('SETRANGE', key, '29', bytes('>I8I7I7I7', used, told, begun, version)) -- the rest of the entry stays
elseif set > clock - slack and not ledger then
  call('SETRANGE', key, '29', bytes('>I8', used) .. (told > 0 and bytes('>I7', told) or ''))
else
  if ledger then
    entry = bytes('>I7I7I1I7', version, epoch, whole + (base < 0 and 2 or 0), math.abs(base))
  end
  local behind = begun > 0 and bytes('>I7I7', told, begun) .. entry .. past or told > 0 and bytes('>I7', told) or ''
  call('SET', key, '\4\0\0\0\0\0\0\0' .. bytes('>I7I7I7I8', start, stop, clock, used) .. behind, 'PX', lifetime(stop + life))
end
--- recall entry (ledger)
--- reads base begun epoch ledger past stop used version whole
--- sets former
if ledger then
  former = { begun, stop, #past / 22, used, version, epoch or 0, whole, base }
end
--- recall entry of (ledger)
--- reads former i ledger n number past
if ledger then
  former[n + 4], former[n + 3] = number('>I1I7', past, i + 14)
end
--- renew (ledger)
--- reads at base call clock cost epoch held key used version whole
--- sets asked base charging cost delay expected held reset retry room set start
--- sets used whole
local expected, asked, charging, room, retry, reset, delay = at, cost, false, nil, nil, nil, nil
cost = 0
--- insert ends
--- insert look
if asked == 0 and version == 0 then
  call('UNLINK', key)
elseif asked == 0 and reset then
  start, base, whole, used, held = clock, base - used, 1, 0, 1
elseif asked < 0 and whole == 0 and (epoch or 1) == expected then
  base, whole, used, held = base - asked, 1, math.min(used - asked, 9007199254740991), 1
end
if held > 0 then
  set = 0
  --- insert write
  --- insert stay
end
