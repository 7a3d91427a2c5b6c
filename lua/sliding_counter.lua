-- Sliding counter over buckets of equal or of adaptive width. A bucket counts
-- until its last microsecond has left the window, so that no window ever holds
-- more than max; a bucket's oldest events are counted for up to its width too
-- long. Layered buckets decide as equal ones of the fine width do, and are these.
--
-- KEY    a STRING: a byte that is 2, and then numbers of 7 bytes, the highest byte
--        first: the end of a block, or 0; until when the key lives; what all buckets
--        together have counted; the time of the newest event; where the newest bucket
--        starts, the first microsecond after it, and its count; the first microsecond that
--        its buckets count; and for each older bucket, oldest first, the first
--        microsecond after it and its count.
-- AT     the time of the charge. Its bucket is the first one that ends after it, unless
--        that was gone before the first microsecond, with its key or out of the window.
-- PARAM  the width of a bucket in microseconds; 0 adapts it.
-- CALLS  look: GET; calls in a row share one MGET. charge: SETRANGE, and PEXPIRE if
--        another window charged the bucket before; or SET for a new bucket, or if one
--        has left. refund: GET, SETRANGE, and SETRANGE again for an older bucket. There
--        are at most 1,000 buckets in a window, or 1,024 adaptive ones.
--
-- Adaptive: a new bucket is half as wide as the one before if that holds an
-- eighth of max, twice if it holds less than a 32nd, from a 1024th to a 16th of
-- the window; the first one takes a 64th.
--- gather
--- insert strings
--- shared
--- insert numbers
--- open
--- reads number
--- sets count expires floor kind newest older start state stop used
local state
--- insert read
local expires, used, newest, start, stop, count, floor = nil, 0, 0, nil, 0, 0, 0
-- The first bytes of a counter, and the number of bytes before its older buckets.
local kind, older = '\2\0\0\0\0\0\0\0', 57
if state then
  if string.byte(state, 1, 1) ~= 2 or #state ~= #kind and (#state < older or (#state - older) % 14 ~= 0) then
    error('a text of another kind')
  end
  --- insert end
  if #state > #kind then
    expires, used, newest, start, stop, count, floor = number('>I7I7I7I7I7I7I7', state, #kind + 1)
  end
end
--- end (block)
--- reads number state
--- sets ends
ends = number('>I7', state, 2)
if ends == 0 then
  ends = nil
end
--- look
--- reads clock cost leaver max newest number older state stop used window
--- sets at count first floor newest place reset retry room start stop used
--- insert open
at = clock
if newest > clock + window then
  newest, start, stop, count = 0, nil, 0, 0 -- from before the clock stepped back, see prelude.lua
  --- insert forget
elseif newest > clock then
  at = newest
end
local first, place = at - window + 1, older + 1 -- the window's first microsecond; the first bucket in it
if stop <= first then -- all have left
  used = 0
else
  while place < #state do
    local leaves, count = number('>I7I7', state, place)
    if leaves > first then
      break
    end
    used, place, floor = used - count, place + 14, leaves
  end
end
if used > 0 then
  reset = stop - 1 + window - clock
end
room = max - used
if cost > room then
  local free, want = room, cost
  --- insert leaver
  retry = leaver - 1 + window - clock
end
--- leaver
--- reads free number place state stop want
--- sets free leaver
-- Until the buckets that leave first make room.
local leaver = stop
for place = place, #state, 14 do
  local leaves, count = number('>I7I7', state, place)
  free = free + count
  if free >= want then
    leaver = leaves
    break
  end
end
--- charge
--- reads at bytes call clock cost count expires first floor key kind leaver
--- reads lifetime max older param place retry room start state stop sub used
--- reads window
--- sets count floor head leaves log reset retry start stop
if cost == room and used > 0 then
  local free, want = 0, 1
  --- insert leaver
  retry = leaver - 1 + window - clock
end
local log
if stop <= at then
  local inside = stop > first -- the newest bucket is in the window
  if not inside then
    floor = at
  end
  log = inside and sub(state, place) .. bytes('>I7I7', stop, count) or ''
  local width = param
  if width == 0 then
    width = window / 64
    if inside then
      width = stop - start
      if count * 8 >= max then
        width = width / 2
      elseif count * 32 < max then
        width = width * 2
      end
    end
    width = math.max(1, math.floor(math.min(math.max(width, window / 1024), window / 16)))
  end
  start, count = at - at % width, 0
  stop = start + width
elseif place > older + 1 then
  log = sub(state, place)
end
local leaves = stop - 1 + window
local head = kind .. bytes('>I7I7I7I7I7I7', leaves, used + cost, at, start, stop, count + cost)
if log then
  call('SET', key, head .. bytes('>I7', floor) .. log, 'PX', lifetime(leaves))
else
  call('SETRANGE', key, '0', head)
  if expires ~= leaves then
    call('PEXPIRE', key, lifetime(leaves))
  end
end
reset = stop - 1 + window - clock
if cost == room then
  retry = retry or reset
end
--- refund
--- reads at bytes call cost count floor key kind newest number older start
--- reads state stop used
--- insert open
if at >= floor and at < stop then
  local place, counted = older + 1, nil
  while place < #state and number('>I7', state, place) <= at do
    place = place + 14
  end
  if place < #state then
    counted = number('>I7', state, place + 7)
  end
  local back = math.min(cost, counted or count)
  if counted and back > 0 then
    call('SETRANGE', key, #kind + 7, bytes('>I7', used - back))
    call('SETRANGE', key, place + 6, bytes('>I7', counted - back))
  elseif back > 0 then
    call('SETRANGE', key, #kind + 7, bytes('>I7I7I7I7I7', used - back, newest, start, stop, count - back))
  end
end
--- mark
--- reads bytes ends key
--- sets written
local written = redis.pcall('SETRANGE', key, '0', '\2' .. bytes('>I7', ends))
--- release
--- insert unmark
