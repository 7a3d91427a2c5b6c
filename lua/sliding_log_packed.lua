-- Sliding log in a STRING: the same decisions as in a ZSET, in less memory and by fewer
-- commands.
--
-- KEY    A byte that is 0; the end of a block in 7 bytes, the highest first, or 0; and
--        the time of every event in microseconds, in 7 bytes, oldest event first. Events
--        of one time stand there once each.
--        Of a long log the first byte is 1. After the block follow, in 4 bytes each, how
--        many slots there are, the first one that is used, and how many are; and in a
--        byte each how many events come before these in time, and how many after, from 1
--        to 8. Room for 8 events holds the latter at its beginning, and room for 8 more
--        the former at its end. Then come the slots, a ring.
-- PARAM  length of a time slice in microseconds, as for the ZSET.
-- CALLS  look: if max is at most 64, GET; calls in a row share one MGET. If it is more,
--        GETRANGE for the beginning; and of a long log, about every 8th time that an
--        event has left, or if several have, GETRANGE for the next 8; if these have
--        left, GETRANGE about log n times. GETRANGE for most refusals of a long log. GET
--        if max was less when the log was charged.
--        charge: APPEND; SET if more than four events have left, or all have. If max is
--        above 64, a log of more than 32 events becomes a long one by SET, and so does
--        one that has too few slots or more than four times what is used: it gets an
--        eighth more than it needs. Above 16,384 events it gets as many as max, once, by
--        UNLINK and SETRANGE; or SET if Redis allows no text that long. Otherwise
--        SETRANGE for a long log, and about every 8th time another. PEXPIRE if the
--        newest event is not of the same stretch of slack, see prelude.lua.
--        refund: GET or GETRANGE as above, and GETRANGE about 2 log n times; SET or
--        SETRANGE, and for a long log GETRANGE and SETRANGE for those behind the charge
--        in the ring, or those before it if they are fewer.
--
-- Lua hashes every byte of every text, so a script should see few of them. A charge
-- removes all events that have left, but up to four of them stay in a log that is not
-- long, and nothing counts them.
--- gather
--- reads max
if max <= 64 then
  --- insert strings
end
--- shared
--- reads bytes call clock
--- sets slots stamp
--- insert numbers
local stamp = bytes('>I7', clock) -- the time of an event now

-- Reads events of the ring of a long log, from the i-th on.
local function slots(key, rest, start, size, i, n)
  local from = (start + i) % size
  local upto = from + n
  local events = call('GETRANGE', key, rest + 7 * from, rest + 7 * (upto < size and upto or size) - 1)
  if upto > size then
    events = events .. call('GETRANGE', key, rest, rest + 7 * (upto - size) - 1)
  end
  if #events ~= 7 * n then
    error('a log that is cut off')
  end
  return events
end
--- open
--- reads call key max number
--- sets back base front long newest oldest rest ring short size skip start
--- sets state
-- Reads the log under key: front events from the byte after skip on, in state; then,
-- of a long log, ring events in slots, and back events behind the header in state.
local state, front, ring, back, skip, start, size, oldest, newest = nil, 0, 0, 0, 0, nil, nil, nil, nil
-- The first bytes of a short and of a long log, the number of these bytes, and the
-- number of bytes before the slots of a long log.
local short, long, base, rest = '\0\0\0\0\0\0\0\0', '\1\0\0\0\0\0\0\0', 8, 134
if max <= 64 then
  --- insert read
else
  state = call('GETRANGE', key, '0', '232')
  if state == '' then
    state = nil
  elseif #state == 233 and string.byte(state, 1, 1) == 0 then
    state = call('GET', key)
  end
end
if state then
  local length, kind, ended = #state, nil, nil
  if length > base + 6 then
    kind, ended, oldest = number('>I1I7I7', state, 1)
    if kind == 0 then
      front, skip, newest = (length - base) / 7, base, number('>I7', state, length - 6)
    elseif kind == 1 and length >= rest then
      size, start, ring, front, back = number('>I4I4I4I1I1', state, base + 1)
      if front < 1 or front > 8 or back < 1 or back > 8 or start >= size or ring < 1 or ring > size then
        error('a log of another kind')
      end
      skip = rest - 7 * front
      oldest, newest = number('>I7', state, skip + 1), number('>I7', state, base + 8 + 7 * back)
    end
    --- insert ended
  --- insert short
  end
  -- Only a long log begins with 1, and its ring is never empty.
  if not kind or kind > ring or front % 1 > 0 then
    error('a text of another kind')
  end
end
--- look
--- reads back charging clock cost first front max newest number oldest retry ring
--- reads skip state window
--- sets ahead at left live newest reset room
room, at = max, clock
--- insert open
local live, left, ahead = 0, front + ring + back, nil
if newest then
  local first = first
  if newest > clock + window then
    newest = 0 -- from before the clock stepped back, see prelude.lua
    --- insert forget
  elseif newest > clock then
    at = newest
    first = at - window + 1
  end
  if newest >= first then
    left = 0
    if oldest < first then
      -- In part, the event at low has left the window, and the event at most has not.
      local part, place, low, most = state, skip + 1, 0, front - 1
      if ring > 0 and number('>I7', part, place + 7 * most) < first then
        --- insert search
      end
      -- Few have left, unless the key was idle for a while.
      if most - low > 4 then
        local one, two, three, four = number('>I7I7I7I7', part, place + 7 * (low + 1))
        if four < first then
          low = low + 4
        else
          low = low + (one >= first and 0 or two >= first and 1 or three >= first and 2 or 3)
          most = low + 1
        end
      end
      local high = low + 1
      while high < most and number('>I7', part, place + 7 * high) < first do
        low, high = high, high * 2 + 1
      end
      if high > most then
        high = most
      end
      while high - low > 1 do
        local middle = (low + high) / 2
        middle = middle - middle % 1
        if number('>I7', part, place + 7 * middle) < first then
          low = middle
        else
          high = middle
        end
      end
      left = left + high
    end
    live = front + ring + back - left
  end
  room = max - live
  if cost > room then
    local leaver = left + cost - room - 1
    --- insert leaver
  end
  if (retry or not charging) and live > 0 then
    reset = newest + window - clock
  end
end
--- leaver
--- reads base clock front key leaver number rest retry ring size skip slots
--- reads start state window
--- sets retry
if leaver < front then
  retry = number('>I7', state, skip + 7 * leaver + 1)
elseif leaver < front + ring then
  retry = number('>I7', slots(key, rest, start, size, leaver - front, 1), 1)
else
  retry = number('>I7', state, base + 15 + 7 * (leaver - front - ring))
end
retry = retry + window - clock
--- search
--- reads back base first front key number rest ring size slots start state
--- sets ahead left low most part place
-- All events in front have left: it is among the next ones that one has not.
low, most, place, left = -1, math.min(ring, 8) - 1, 1, front
part = slots(key, rest, start, size, 0, most + 1)
if number('>I7', part, 7 * most + 1) >= first then
  ahead = part
else
  local before, after = most, ring
  while after - before > 1 do
    local middle = math.floor((before + after) / 2)
    if number('>I7', slots(key, rest, start, size, middle, 1), 1) < first then
      before = middle
    else
      after = middle
    end
  end
  left = front + after
  if after < ring then
    most = 0 -- this is the one
  else
    part, place, most = state, base + 15, back - 1
  end
end
--- charge
--- reads ahead at back base bytes call clock cost front key left lifetime
--- reads live max newest param ring room short skip slack stamp start state
--- reads sub window
--- sets at front left log opens reset retry ring start
if param > 0 and live > 0 then
  at = math.max(at - at % param, newest)
end
-- The first event of a stretch of slack sets the expiry for all of it.
local opens = live == 0 or newest < at - at % slack
local log = at == clock and stamp or bytes('>I7', at)
if cost > 1 then
  log = string.rep(log, cost)
end
if cost == room then
  if live > 0 then
    local leaver = left
    --- insert leaver
  else
    retry = at + window - clock
  end
end
-- To remove events takes longer than to read a few that have left.
if left <= 4 and live > 0 and (max <= 64 or left + live + cost <= 32) then
  left = 0
end
if ring == 0 then
  if live == 0 then
    log = short .. log
  elseif left == 0 and (max <= 64 or front + cost <= 32) then
    call('APPEND', key, log)
    log = nil
  else
    log = short .. sub(state, skip + 7 * left + 1) .. log
  end
else
  local head, tail = nil, sub(state, base + 15, base + 14 + 7 * back) .. log
  if left < front then
    front = front - left
  else
    if ahead then
      head = sub(ahead, 7 * (left - front) + 1)
      start, ring = start + #ahead / 7, ring - #ahead / 7
    else
      local gone = math.min(left - front, ring)
      head, start, ring = '', start + gone, ring - gone
      tail = sub(tail, 7 * (left - front - gone) + 1)
    end
    front = 0
  end
  --- insert join
end
if log then
  --- insert set
elseif opens then
  call('PEXPIRE', key, lifetime(at + window + slack))
end
reset = at + window - clock
--- join
--- reads bytes call front head key long rest ring short size slots start
--- reads state sub tail
--- sets back front head log moved ring start tail
-- Writes a long log if there are as many slots as it should have, and else sets log to
-- all of it. The last events are tail, and the first ones head, or if that is nil
-- those front events that are there.
if head == '' and ring > 0 then
  local n = math.min(ring, 8)
  head = slots(key, rest, start, size, 0, n)
  start, ring = start + n, ring - n
end
if tail == '' and ring > 0 then
  ring = ring - 1
  tail = slots(key, rest, start, size, ring, 1)
end
back = #tail / 7
local moved = back > 8 and back - 1 or 0 -- how many go to the ring
if ring == 0 or ring + moved > size or (ring + moved) * 4 < size and ring + moved <= 4096 then
  log = short .. (head or sub(state, rest - 7 * front + 1, rest))
    .. (ring > 0 and slots(key, rest, start, size, 0, ring) or '') .. tail
else
  log = nil
  if moved > 0 then
    local i, events = ring, sub(tail, 1, 7 * moved)
    --- insert store
    ring, back, tail = ring + moved, 1, sub(tail, 7 * moved + 1)
  end
  if head then
    front = #head / 7
    tail = tail .. string.rep('\0', 112 - 7 * (back + front)) .. head
  end
  call('SETRANGE', key, '0', long .. bytes('>I4I4I4I1I1', size, start % size, ring, front, back) .. tail)
end
--- store
--- reads call events i key rest size start sub
--- sets fits from
-- Writes events to the ring, from the i-th on.
local from = (start + i) % size
local fits = 7 * (size - from)
if #events > fits then
  call('SETRANGE', key, rest + 7 * from, sub(events, 1, fits))
  call('SETRANGE', key, rest, sub(events, fits + 1))
else
  call('SETRANGE', key, rest + 7 * from, events)
end
--- set
--- reads at base bytes call clock key lifetime log long max opens rest
--- reads slack sub window
--- sets log whole
-- Writes a log that is not long, or makes it so, and its expiry if that is to change.
local whole -- how long the text is to become
if max > 64 and #log > 232 then
  -- An eighth more slots than are used, but no more than the log may hold; and all of
  -- these for more than 16,384 events, so that none of the copies is large.
  local ring = (#log - base) / 7 - 9
  local size = math.floor(ring * 9 / 8) + 8
  if ring > 16384 and ring <= max then
    size = max + 256
  elseif ring <= max and size > max then
    size = max
  end
  whole = rest + 7 * size
  log = long .. bytes('>I4I4I4I1I1', size, 0, ring, 8, 1) .. sub(log, -7) .. string.rep('\0', 49)
    .. sub(log, base + 1, base + 56) .. sub(log, base + 57, -8)
  if whole <= 131072 then
    log = log .. string.rep('\0', whole - #log)
  end
end
if whole and whole > 131072 then
  -- Redis makes a new text as long as it must be, and one that grows up to twice as long.
  local lives = opens and -1 or call('PTTL', key)
  lives = lifetime(lives < 0 and at + window + slack or clock + lives * 1000 - 100000)
  call('PEXPIRE', key, lives) -- what may fail does so before the old text is gone
  call('UNLINK', key)
  if type(redis.pcall('SETRANGE', key, whole - 1, '\0')) == 'table' then
    -- Longer than proto-max-bulk-len allows: the text grows as far as it is used.
    call('SET', key, log)
  else
    call('SETRANGE', key, '0', log)
  end
  call('PEXPIRE', key, lives)
elseif opens then
  call('SET', key, log, 'PX', lifetime(at + window + slack))
else
  call('SET', key, log, 'KEEPTTL')
end
--- refund
--- reads at back base call cost front key number rest ring short size
--- reads skip slots start state sub
--- sets cost empty from index log opens ring start upto
--- insert open
-- Where the first event stands that is not before a time.
local function index(time)
  local low, high = 0, front + ring + back
  while low < high do
    local middle = math.floor((low + high) / 2)
    local log, place = state, skip + 7 * middle + 1
    if middle >= front + ring then
      place = base + 15 + 7 * (middle - front - ring)
    elseif middle >= front then
      log, place = slots(key, rest, start, size, middle - front, 1), 1
    end
    if number('>I7', log, place) < time then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end
local from, upto = index(at), index(at + 1)
cost = math.min(cost, upto - from)
local opens, log
if cost > 0 and ring == 0 then
  log = short .. sub(state, skip + 1, skip + 7 * from) .. sub(state, skip + 7 * (from + cost) + 1)
elseif cost > 0 then
  local head, tail = sub(state, skip + 1, rest), sub(state, base + 15, base + 14 + 7 * back)
  -- Equal events are removed where that takes the least work.
  local last = math.min(cost, upto - math.max(from, front + ring))
  if last > 0 then
    local place = 7 * math.max(from - front - ring, 0)
    tail, cost = sub(tail, 1, place) .. sub(tail, place + 7 * last + 1), cost - last
  end
  local first = math.min(cost, front - from)
  if first > 0 then
    head, cost = sub(head, 1, 7 * from) .. sub(head, 7 * (from + first) + 1), cost - first
  end
  if cost > 0 then
    local i = math.max(from - front, 0)
    local behind = ring - i - cost
    if behind < i then
      if behind > 0 then
        local events = slots(key, rest, start, size, i + cost, behind)
        --- insert store
      end
    else
      if i > 0 then
        local events, i = slots(key, rest, start, size, 0, i), cost
        --- insert store
      end
      start = start + cost
    end
    ring = ring - cost
  end
  --- insert join
end
local empty = log == short
--- insert hold
if empty then
  call('UNLINK', key)
elseif log then
  --- insert set
end
--- hold (block)
--- reads empty ends
--- sets empty
empty = empty and not ends -- the key stays for the block, and expires as it would have
--- whole
--- reads clock live newest window
--- sets reset
if live > 0 then
  reset = newest + window - clock
end
--- mark
--- reads bytes ends key
--- sets written
local written = redis.pcall('SETRANGE', key, '1', bytes('>I7', ends))
--- drop
--- insert unmark
