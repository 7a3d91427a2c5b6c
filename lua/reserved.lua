-- Fixed window, or period of the calendar, whose charges come back unless their calls are
-- settled: a charge is reserved at first, and lapses RESERVE after it was made or renewed.
--
-- KEY    a ZSET with one member a reservation: its number, 16 digits, a blank and its
--        cost; the score is the time in microseconds at which it lapses. Numbers count
--        the time: that of a charge, raised where needed to be above every earlier one,
--        so that no two of a key are the same. Six members come first, each with a number
--        below 0, or 0, as its score:
--          start  when the period began to be counted; 0: none has since a reset
--          stop   when it ends
--          used   how much of it is used, what is reserved included
--          open   how much of that is reserved
--          last   the highest number so far
--          reset  the highest number at the last reset; 0: there was none
--        A reservation takes about 40 bytes, and 125 of keys with more than 128. A key
--        has at most 10,000: then calls are denied until one is settled or lapses.
--        With a KEEP, see past.lua, members of the score 2^53-1 follow: "begun" and when
--        the period has begun; and for each before it in which something was charged
--        "past", when that began, 0 if that is not known, when it ended, and how much was
--        used.
-- AT     the reservation's number.
-- TERMS  behind the six of take.lua, RESERVE and DEBT, which all terms of the script have
--        then. PARAM and MORE are 0 for a fixed window, and else those of calendar.lua.
--        RESERVE is 0 if nothing lapses. DEBT says what becomes of what calls cost beyond
--        max: 0, it counts to the end of the period; 1, up to all of the next period's max
--        is used when that begins; 2, used does not grow beyond max.
-- CALLS  look: ZRANGE, ZCARD; ZRANGEBYSCORE if reservations have lapsed; ZREVRANGE for a
--        denial while others are open. charge: ZADD; ZADD ZREM before it if reservations
--        have lapsed; PEXPIRE if the second has changed since the last one; ZADD UNLINK,
--        ZADD and PEXPIRE for a new period. settle: those of look but ZCARD, and those of
--        a charge beside what has lapsed. renew: those of a charge, with ZSCORE. A reset,
--        which is a renewal at no cost: ZRANGE UNLINK ZADD PEXPIRE.
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
if ARGV[i + 3] ~= '0' and (clock < ARGV[i + 3] - ARGV[i + 1] or clock >= ARGV[i + 4] + 0) then
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
--- reads call clock debt key max more param sub text window
--- sets back edge forgot found fresh gone head highest open owed start stop
--- sets used
local found, head = call('ZRANGE', key, '0', '6', 'WITHSCORES'), {}
for j = 1, math.min(#found, 12), 2 do
  head[found[j]] = -found[j + 1]
end
local start, stop, used, open = head.start, head.stop, head.used, head.open
local highest, forgot = head.last, head.reset
if found[1] and not (start and used and highest) then
  error('members of another kind')
end
local back, owed, gone = 0, 0, {}
if not start or start > clock + window then
  -- There is nothing, or it is from before the clock stepped back, see prelude.lua.
  found, start, stop, used, open, highest, forgot = {}, 0, 0, 0, 0, 0, 0
elseif start > 0 and param == 0 then
  stop = start + window
end
local edge = clock < stop and clock or stop
if found[14] and start > 0 and found[14] + 0 <= edge then
  gone = call('ZRANGEBYSCORE', key, '(0', text(edge))
  for _, name in ipairs(gone) do
    back = back + sub(name, 18)
  end
  used, open = used - back, open - back
end
local fresh = clock >= stop
--- insert past
if fresh then
  --- insert over
  local begin = clock
  if debt == 1 and used > max and start > 0 then
    if param == 0 and clock < stop + window then
      begin, owed = stop, math.min(used - max, max)
    elseif param > 0 and stop == (clock < param and param - window or param) then
      owed = math.min(used - max, max)
    end
  end
  start, stop = begin, begin + window
  if param > 0 then
    stop = clock < param and param or more
  end
  used, open, gone = owed, 0, {}
end
--- look
--- reads call clock cost debt fresh gone key lapses max more open owed
--- reads param reservations reset retry start stop used window
--- sets at reset retry room
--- insert open
room, at = max - used, clock
if start > clock then
  at = start
end
if not fresh or owed > 0 then
  reset = stop - clock
end
if cost > room then
  retry = reset
  if open > 0 and cost <= room + open then
    --- insert latest
    retry = math.min(reset, lapses - clock)
  elseif debt == 1 and cost <= max and cost > max * 2 - used + open then
    retry = stop == param and more - clock or reset + window -- no client sees behind more
  end
end
if open >= 10000 then
  --- insert number open
  if reservations >= 10000 then
    local soonest = call('ZRANGE', key, 6 + #gone, 6 + #gone, 'WITHSCORES')[2] - clock
    retry = math.max(retry or 0, math.min(reset, soonest))
  end
end
--- latest
--- reads call key
--- sets lapses
local lapses = call('ZREVRANGE', key, '0', '0', 'WITHSCORES')[2]
--- number open
--- reads call gone key
--- sets reservations
local reservations = call('ZCARD', key) - 6 - #gone
--- charge
--- reads clock cost highest member open reserve stop used
--- sets at highest name open reset used
local name
highest, used = highest < clock and clock or highest + 1, used + cost
if reserve > 0 then
  open, name = open + cost, member(highest, cost)
end
--- insert write
at, reset = highest, stop - clock
--- write
--- reads call clock debt forgot format fresh gone head highest key lifetime max
--- reads name open reserve start stop text used window
--- sets lives used values
if used > 9007199254740991 then
  used = 9007199254740991 -- the largest max, see fixed_window.lua
end
local lives = stop
if debt == 1 and used > max then
  lives = stop + window + window / 8 -- periods of the calendar are no longer than that
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
  --- insert history
end
local values = { format('%.0f', -used), 'used', format('%.0f', -open), 'open', format('%.0f', -highest), 'last' }
if name then
  values[7], values[8] = text(clock + reserve), name
end
call('ZADD', key, unpack(values))
if not fresh and head.stop ~= stop then
  call('ZADD', key, format('%.0f', -stop), 'stop')
end
-- Somebody may have removed the expiry.
if fresh or lives > stop or head.stop ~= stop or math.floor(head.last / 1000000) ~= math.floor(clock / 1000000) then
  --- insert longer
  call('PEXPIRE', key, lifetime(lives))
end
--- settle
--- reads arg call clock debt each forgot fresh gone head last max member
--- reads open place reserve start times used
--- sets charged kept open place used
-- Settles charges up to that of the last key, each by the same cost.
local charged, kept = ARGV[arg - 2] + 0, ARGV[arg - 1] + 0
for i = place, last do
  place = i + 1
  local key, at = KEYS[i], times
  --- insert ends
  --- insert open
  local grows, name = math.max(0, each), nil
  local here = not fresh and at >= start and at > forgot
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
    local most = math.max(used, max)
    used = math.max(0, used + grows)
    if debt == 2 and grows > 0 and used > most then
      used = most
    end
    --- insert write
  end
end
--- renewal
--- reads call clock each forgot found fresh highest last lifetime member n open
--- reads place replies reserve start text times used
--- sets highest n open place used
-- Renews reservations up to that of the last key.
for i = place, last do
  place = i + 1
  local key, cost, at, held = KEYS[i], each, times, 0
  --- insert open
  if cost == 0 then
    local last = '-' .. text(highest < clock and clock or highest)
    call('UNLINK', key)
    call('ZADD', key, '0', 'start', '0', 'stop', '0', 'used', '0', 'open', last, 'last', last, 'reset')
    call('PEXPIRE', key, lifetime(clock + reserve))
  elseif not found[1] or not fresh and at >= start and at > forgot then
    local name = member(at, cost)
    local score = not fresh and call('ZSCORE', key, name)
    if score and score + 0 > clock then
      held = at
    else
      held = highest < clock and clock or highest + 1
      name, highest, used, open = member(held, cost), held, used + cost, open + cost
    end
    --- insert write
  end
  replies[n + 1], replies[n + 2] = held, 0
  n = n + 2
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
--- sets begun past
if keep > 0 then
  local begin = clock < param and param - window or param
  past = {}
  if start > 0 then
    --- insert read past
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
--- reads call gone key
--- sets reservations
local reservations = call('ZCARD', key) - 6 - #gone - #call('ZRANGEBYSCORE', key, '9007199254740991', '+inf')
--- recall (past)
--- reads begun fresh keep operation past stop
--- sets former
if keep > 0 and operation == 'peek' then
  if not fresh then
    --- insert read past
  end
  former = { begun, stop, #past }
  for j = #past, 1, -1 do
    local n, began, ended, units = #former, string.match(past[j], '^past (%d+) (%d+) (%d+)$')
    former[n + 1], former[n + 2], former[n + 3] = began + 0, ended + 0, units + 0
  end
end
