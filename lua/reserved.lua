-- Fixed window, or period of the calendar, whose charges come back unless their calls are
-- settled: a charge is reserved at first, and lapses RESERVE after it was made or renewed.
--
-- KEY    a ZSET with one member a reservation: its number, 16 digits, a blank and its
--        cost; the score is the time in microseconds at which it lapses. Numbers count
--        the time: that of a charge, raised where needed to be above every earlier one,
--        so that no two of a key are the same. Six members or more come first, each with a
--        number below 0, or 0, as its score:
--          start  when the period began to be counted; 0: none has since a reset
--          stop   when it ends
--          used   how much of it is used, what is reserved included
--          open   how much of that is reserved
--          last   the highest number so far
--          reset  the highest number at the last reset; 0: there was none
--          owed   how much of used is a debt, if any has been; and
--          due    when the period ends that a debt is charged to: that which follows this one
--          earlier  the highest number of the periods before this one, if that is not below
--                 start: of charges of one microsecond the last have later numbers
--          told   the highest share of the period that was told, if any, see past.lua
--        A reservation takes about 40 bytes, and 125 of keys with more than 128. A key
--        has at most 10,000: then calls are refused until one is settled or lapses.
--        With a KEEP, see past.lua, members of the score 2^53-1 follow: "begun" and when
--        the period has begun; and for each before it in which something was charged
--        "past", when that began, 0 if that is not known, when it ended, and how much was
--        used.
-- AT     the reservation's number.
-- TERMS  behind the six of take.lua, RESERVE and DEBT, which all terms of the script have
--        then. PARAM and MORE are 0 for a fixed window, and else those of calendar.lua. But
--        if debts are owed the clock must be before PARAM: a debt is due at MORE.
--        RESERVE is 0 if nothing lapses. DEBT says what becomes of what calls cost beyond
--        max: 0, it counts to the end of the period; 1, it is owed, and used when the next
--        period begins, whatever the max, the zone and the anchor are by then; 2, used does
--        not grow beyond max. A debt is that of the max by which a call is settled. What is
--        given back later of the same period pays it.
-- CALLS  look: ZRANGEBYSCORE; ZCARD if there may be many reservations; ZREVRANGE for a
--        refusal while others are open. charge: ZADD; ZADD ZREM before it if reservations
--        have lapsed; PEXPIRE if the second has changed since the last one; ZADD UNLINK,
--        ZADD and PEXPIRE for a new period. settle: those of look but ZCARD, and those of
--        a charge beside what has lapsed. renew: those of a charge, with ZSCORE. A reset,
--        which is a renewal at no cost: ZRANGEBYSCORE UNLINK ZADD PEXPIRE.
--        Nothing is removed before ZADD, of no member, has shown that it is not refused:
--        what is gone could not be written again. A server without memory refuses it only
--        as long as a script has written nothing.
-- SETTLE The time of the charge is its number, also where the cost has grown. A mark of 1
--        says that the reservation is known to have lasted to the end of its period: then
--        it was used there. Without that it has lapsed if it is not there, and all that
--        the call cost is charged as of now. A mark of 2 says that this may have been done
--        before: what is not there is left alone.
-- RENEW  What is not there, since Redis has lost it or its process was cut off for too
--        long, is charged again, by a number of its own: so no renewal that comes after a
--        settlement is taken for what that has settled. The reply has the number; 0 if the
--        period is over, or was reset.
--
-- RetryAfter cannot be known, since it depends on what calls turn out to cost: it is the
-- time until the last reservation lapses, if there is room then, and else until the period
-- ends, or the next one if what is owed leaves no room there.
--- period
for i = 3, ARGV[2] * SIZE - 3, SIZE do
  if ARGV[i] == 'reserved' then
    --- insert other period
  end
end
--- other period
--- reads clock i
if ARGV[i + 3] ~= '0' and (clock < ARGV[i + 3] - ARGV[i + 1] or clock >= ARGV[i + (ARGV[i + 7] == '1' and 3 or 4)] + 0) then
  return redis.error_reply('PERIOD ' .. string.format('%.0f', clock) .. ' is the time of the server')
end
--- extra terms
--- sets debt reserve
-- See TERMS.
local reserve, debt
--- extra term
--- reads i
--- sets debt reserve
reserve, debt = ARGV[i + 6] + 0, ARGV[i + 7] + 0
--- shared
--- reads format text
--- sets member
--- insert texts
local function member(number, cost)
  return text(number) .. format(' %.0f', cost)
end
--- open
--- reads call clock clock_text key more param sub window
--- sets back carried due earlier forgot found fresh gone head heads highest open
--- sets owed pays start stop used
local found, head, heads = call('ZRANGEBYSCORE', key, '-inf', clock_text, 'WITHSCORES'), {}, 0
while found[2 * heads + 2] and found[2 * heads + 2] + 0 <= 0 do
  head[found[2 * heads + 1]] = -found[2 * heads + 2]
  heads = heads + 1
end
local start, stop, used, open = head.start, head.stop, head.used, head.open
local highest, forgot, earlier, owed, due = head.last, head.reset, head.earlier or 0, head.owed or 0, head.due or 0
--- insert read told
if found[1] and not (start and used and highest) or not found[1] and call('ZCARD', key) > 0 then
  error('members of another kind')
end
--- insert read entry
local back, carried, pays, gone = 0, 0, 0, {}
if not start or start > clock + window then
  -- There is nothing, or it is from before the clock stepped back, see prelude.lua.
  found, start, stop, used, open, highest, forgot, owed, due = {}, 0, 0, 0, 0, 0, 0, 0, 0
  --- insert forget told
elseif start > 0 and param == 0 then
  stop = start + window
end
for j = 2 * heads + 1, #found, 2 do
  if found[j + 1] + 0 <= stop then
    gone[#gone + 1], back = found[j], back + sub(found[j], 18)
  end
end
used, open, owed = used - back, open - back, math.max(0, owed - back)
--- insert lapse entry
local fresh = clock >= stop
--- insert past
if fresh then
  --- insert over
  local begin = clock
  if clock < due then
    carried, pays = owed, due
    if carried > 0 and param == 0 and clock < stop + window then
      begin = stop
    end
  end
  start, stop = begin, begin + window
  if param > 0 then
    stop = clock < param and param or more
  end
  used, open, gone, owed, due = carried, 0, {}, 0, 0
  earlier = highest >= start and highest or 0
  --- insert begin entry
end
--- look
--- reads call carried clock cost due fresh gone heads key lapses max open
--- reads owed pays reservations reset retry start stop used
--- sets at reset retry room
--- insert open
room, at = max - used, clock
if start > clock then
  at = start
end
if not fresh then
  reset = stop - clock
elseif carried > 0 then
  reset = pays - clock
end
if cost > room then
  retry = reset
  if open > 0 and cost <= room + open then
    --- insert latest
    retry = math.min(reset, lapses - clock)
  elseif not fresh and owed > open and cost > max - owed + open then
    retry = due - clock
  end
end
if open >= 10000 then
  --- insert number open
  if reservations >= 10000 then
    local soonest = call('ZRANGE', key, heads + #gone, heads + #gone, 'WITHSCORES')[2] - clock
    retry = math.max(retry or 0, math.min(reset, soonest))
  end
end
--- latest
--- reads call key
--- sets lapses
local lapses = call('ZREVRANGE', key, '0', '0', 'WITHSCORES')[2]
--- number open
--- reads call gone heads key
--- sets reservations
local reservations = call('ZCARD', key) - heads - #gone
--- charge
--- reads clock cost highest member open reserve stop used
--- sets at highest name open reset used
local name
highest, used = highest < clock and clock or highest + 1, used + cost
if reserve > 0 then
  open, name = open + cost, member(highest, cost)
end
--- insert shares
--- insert write
--- insert told shares
at, reset = highest, stop - clock
--- owe
--- reads before debt due max more owed param stop used window
--- sets due most owed
local most = math.max(before, max)
if used < before then
  owed = math.max(0, owed - before + used)
elseif debt == 1 and used > most then
  owed = owed + used - most
  due = due > 0 and due or stop < param and param or stop < more and more or stop + window
end
--- write
--- reads call clock due earlier forgot format fresh gone head highest key lifetime
--- reads name open owed reserve start stop text used
--- sets lives used values
if used > 9007199254740991 then
  used = 9007199254740991 -- the largest max, see fixed_window.lua
end
if fresh and head.last or gone[1] then
  local refused = redis.pcall('ZADD', key, 'XX', '0', '')
  if refused ~= 0 and not string.find(refused.err, 'OOM ') then
    error(refused.err, 0)
  end
  if fresh then
    call('UNLINK', key)
  end
end
for j = 1, #gone, 4000 do
  call('ZREM', key, unpack(gone, j, math.min(j + 3999, #gone)))
end
if fresh then
  call('ZADD', key, format('%.0f', -start), 'start', format('%.0f', -stop), 'stop', format('%.0f', -forgot), 'reset')
  if earlier > 0 then
    call('ZADD', key, format('%.0f', -earlier), 'earlier')
  end
  --- insert history
end
local values = { format('%.0f', -used), 'used', format('%.0f', -open), 'open', format('%.0f', -highest), 'last' }
if name then
  values[7], values[8] = text(clock + reserve), name
end
if due > 0 then
  local n = #values
  values[n + 1], values[n + 2], values[n + 3], values[n + 4] = format('%.0f', -owed), 'owed', format('%.0f', -due), 'due'
end
--- insert write told
--- insert write entry
call('ZADD', key, unpack(values))
if not fresh and head.stop ~= stop then
  call('ZADD', key, format('%.0f', -stop), 'stop')
end
-- Somebody may have removed the expiry.
local lives = owed > 0 and due or stop
if fresh or lives > stop or head.stop ~= stop or math.floor(head.last / 1000000) ~= math.floor(clock / 1000000) then
  --- insert longer
  call('PEXPIRE', key, lifetime(lives))
end
--- settle
--- reads arg call clock debt each earlier forgot fresh gone head last max
--- reads member open place reserve start times used
--- sets charged kept open place used
-- Settles charges up to that of the last key, each by the same cost.
local charged, kept = ARGV[arg - 2] + 0, ARGV[arg - 1] + 0
for i = place, last do
  place = i + 1
  local key, at = KEYS[i], times
  --- insert ends
  --- insert open
  local grows, name = math.max(0, each), nil
  local here = not fresh and at >= start and at > forgot and at > earlier
  if reserve == 0 then
    if here then
      grows = each
    end
  elseif here then
    -- A reservation that has lapsed counts as gone, though it may still be there.
    local score = call('ZSCORE', key, member(at, charged))
    if score and score + 0 > clock then
      gone[#gone + 1] = member(at, charged)
      grows, open = each, open - charged
    else
      grows = kept == 2 and 0 or charged + each
    end
  elseif kept == 2 then
    grows = 0
  elseif kept == 0 and at > forgot then
    grows = charged + each
  end
  if grows ~= 0 or not fresh and head.open ~= open then
    local before = used
    used = math.max(0, used + grows)
    if debt == 2 and used > before then
      used = math.min(used, math.max(before, max))
    end
    --- insert owe
    --- insert shares
    --- insert write
    --- insert told shares
  end
end
--- renewal
--- reads call clock each earlier forgot found fresh highest last lifetime member n
--- reads open place replies reserve start text times used
--- sets highest n open place used
-- Renews reservations up to that of the last key.
for i = place, last do
  place = i + 1
  local key, cost, at, held = KEYS[i], each, times, 0
  --- insert open
  --- insert restore
  if cost == 0 then
    local last = '-' .. text(highest < clock and clock or highest)
    call('UNLINK', key)
    call('ZADD', key, '0', 'start', '0', 'stop', '0', 'used', '0', 'open', last, 'last', last, 'reset')
    call('PEXPIRE', key, lifetime(clock + reserve))
  elseif not found[1] or not fresh and at >= start and at > forgot and at > earlier then
    local before, name = used, member(at, cost)
    local score = not fresh and call('ZSCORE', key, name)
    if score and score + 0 > clock then
      held = at
    else
      held = highest < clock and clock or highest + 1
      name, highest, used, open = member(held, cost), held, used + cost, open + cost
    end
    --- insert owe
    --- insert shares
    --- insert write
    --- insert told shares
  end
  --- insert restored
  replies[n + 1], replies[n + 2] = held, 0
  n = n + 2
end
--- read told (past)
--- reads head
--- sets told
local told = head.told or 0
--- forget told (past)
--- sets told
told = 0
--- shares (past)
--- insert find shares
--- told shares (past)
--- insert tell shares
--- write told (past)
--- reads format told values
if told > 0 then
  values[#values + 1] = format('%.0f', -told)
  values[#values + 1] = 'told'
end
--- past (past)
--- sets begun past
local begun, past
--- read past
--- reads call key
--- sets begun header past
begun, past = 0, call('ZRANGEBYSCORE', key, '9007199254740991', '+inf')
local header = string.match(past[1] or '', '^begun (%d+)$')
if header then
  begun = header + 0
  table.remove(past, 1)
end
--- over (past)
--- reads begun clock format keep param start stop text used window
--- sets begun past told
told = 0
if keep > 0 then
  local begin = clock < param and param - window or param
  past = {}
  if start > 0 then
    --- insert read past
    --- insert keep entry
    past[#past + 1] = 'past ' .. text(begun) .. ' ' .. text(stop) .. format(' %.0f', used + 0) -- no -0
    while #past > keep do
      table.remove(past, 1)
    end
    begin = math.max(begin, stop)
  end
  begun = begin
end
--- history (past)
--- reads begun call keep key past text
if keep > 0 then
  local members = { '9007199254740991', 'begun ' .. text(begun) }
  for _, name in ipairs(past) do
    members[#members + 1] = '9007199254740991'
    members[#members + 1] = name
  end
  call('ZADD', key, unpack(members))
end
--- longer (past)
--- reads life lives
--- sets lives
lives = lives + life
--- latest (past)
--- reads call format key
--- sets behind lapses
local behind = format('%d', #call('ZRANGEBYSCORE', key, '9007199254740991', '+inf'))
local lapses = call('ZREVRANGE', key, behind, behind, 'WITHSCORES')[2]
--- number open (past)
--- reads call gone heads key
--- sets reservations
local reservations = call('ZCARD', key) - heads - #gone - #call('ZRANGEBYSCORE', key, '9007199254740991', '+inf')
--- recall (past)
--- reads begun fresh keep operation past stop
--- sets former
if keep > 0 and operation == 'peek' then
  if not fresh then
    --- insert read past
  end
  former = { begun, stop, #past }
  --- insert recall entry
  for j = #past, 1, -1 do
    local n, began, ended, units = #former, string.match(past[j], '^past (%d+) (%d+) (%d+)$')
    --- insert recall entry of
    former[n + 1], former[n + 2], former[n + 3] = began + 0, ended + 0, units + 0
  end
end
--- read entry (past)
--- reads head start
--- sets base epoch version whole
local version, epoch, base, whole = head.version or start or 0, head.epoch or start, (head.base or 0) - (head.less or 0), head.whole or 0
--- lapse entry (past)
--- reads found gone heads version
--- sets version
if gone[1] then
  version = math.max(version, found[2 * (heads + #gone)] + 0)
end
--- keep entry (past)
--- reads base begun epoch format head ledger past text version whole
if ledger or head.epoch then
  past[#past + 1] = 'past ' .. text(begun) .. ' ' .. text(begun) .. ' ' .. (whole + (base < 0 and 2 or 0)) .. text(version) .. text(epoch)
    .. format('%.0f', math.abs(base))
end
--- begin entry (past)
--- reads carried
--- sets base epoch version whole
version, epoch, base, whole = 0, nil, carried, 0
--- write entry (past)
--- reads base clock epoch format ledger start values version whole
--- sets epoch version
if ledger then
  version, epoch = math.max(version + 1, clock), epoch or start
  local fields = { version = version, epoch = epoch }
  if base ~= 0 or whole > 0 then
    fields.base, fields.less, fields.whole = math.max(base, 0), math.max(-base, 0), whole
  end
  for field, value in pairs(fields) do
    values[#values + 1] = format('%.0f', -value)
    values[#values + 1] = field
  end
end
--- recall entry (past)
--- reads base begun epoch ledger past stop used version whole
--- sets former
if ledger then
  former = { begun, stop, #past, used, version, epoch or 0, whole, base }
end
--- recall entry of (past)
--- reads began ended former ledger n sub units
--- sets began ended units
if ledger then
  former[n + 4] = 0
  if began == ended then
    former[n + 4], began, ended, units = sub(units, 1, 1) + 0, sub(units, 2, 17), sub(units, 18, 33), sub(units, 34)
  end
end
--- restore (past)
--- reads at base call clock cost epoch format found held highest key ledger
--- reads used whole
--- sets base forgot gone held highest open owed used whole
if ledger and cost <= 0 then
  local name
  if cost == 0 and not found[1] then
    call('UNLINK', key)
  elseif cost == 0 then
    held, forgot = 1, math.max(highest, clock)
    call('ZADD', key, format('%.0f', -forgot), 'reset')
    gone = call('ZRANGEBYSCORE', key, '(0', '(9007199254740991')
    highest, open, owed, base, whole, used = forgot, 0, 0, base - used, 1, 0
  elseif cost < 0 and whole == 0 and (epoch or 1) == at then
    held, base, whole, used = 1, base - cost, 1, used - cost
  end
  if held > 0 then
    --- insert write
  end
else
--- restored (past)
end
