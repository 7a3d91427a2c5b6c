-- Token bucket and leaky bucket. Both are a level that drains by max in a
-- window and may not rise above a burst: what a token bucket lacks of being
-- full is what a leaky bucket holds.
-- (Turner, "New directions in communications", IEEE Communications 24, 1986.)
--
-- KEY    a STRING: a byte that is 3, and then numbers of 7 bytes, the highest byte
--        first: the end of a block, or 0; until when the key lives; the time that the
--        level was true at; and, in 8 bytes, the level in millionths of an event. It is
--        a whole number, rounded up, so that rounding never admits what should be
--        refused. Then, unless the bucket was empty before the last charge, since when
--        it was not; and the share, in 2 bytes how often it was halved and in 5 bytes
--        the rest. A key that holds no more than a block ends before the second number.
--        Of a queue with gaps then the window and max that they are of and, for each of
--        at most 64, where it ends and how many events it has.
--
-- What a bucket holds drains evenly: when the level drains, all charges in it lose the
-- same share of themselves. So share is what is left by now of a charge that was made
-- when the bucket was last empty, and what is left of a later one is the share now by
-- the share then. So what is left of all charges together is the level, and they can be
-- given back in any order. A share is rest / 2^(40 + halvings), with a rest below 2^40,
-- and is rounded down. What is given back is rounded to a millionth of an event: down,
-- but up while nothing drains, so that room for whole events stays so.
--
-- A gap is where a call has left a queue before its turn, and others stand behind it: these keep
-- their turns, and the next call that fits takes it. Gaps beside each other are one, and those at
-- the end shorten the line.
--
-- AT     the time of the charge; of a queue, the end of the call's turn.
-- MARK   the share when the charge was made, as a number that grows while the share
--        falls: (halvings + 1) * 2^40 - 1 - rest. 0 is all of it. Of a queue, the time
--        of the charge.
-- PARAM  the burst.
-- MORE   from 0 on, the bucket is a queue: calls leave it evenly, and one that
--        would have to wait for longer than this is refused. -1: it is not.
-- CALLS  look: GET; calls in a row share one MGET. charge: SETRANGE while the key lives
--        long enough and at most slack longer than need be, or else SET.
--- gather
--- insert strings
--- shared
--- insert numbers
--- open
--- reads number
--- sets begun expires halvings rest since state stored
local state
--- insert read
local expires, since, stored, begun, halvings, rest
if state then
  local kind, ended
  if #state >= 44 then
    kind, ended, expires, since, stored, begun, halvings, rest = number('>I1I7I7I7I8I7I2I5', state, 1)
    --- insert ended
  elseif #state == 30 then
    kind, ended, expires, since, stored = number('>I1I7I7I7I8', state, 1)
    begun, halvings, rest = since, 0, 2 ^ 40 - 1
    --- insert ended
  --- insert short
  end
  if kind ~= 3 then
    error('a text of another kind')
  end
end
--- share
--- sets mark
local mark = 0
--- look
--- reads ceil charging clock cost halvings max more number param rest since state
--- reads stored window
--- sets at begun delay early empty expires gap gaps halvings held level mark
--- sets most moved reset rest retry room since stored
--- insert open
at = clock
local level, held = 0, stored
mark = 0
if stored and since > clock + window then
  expires, stored = nil, nil -- from before the clock stepped back, see prelude.lua
  --- insert forget
end
if stored then
  -- A bucket is empty after 2^52 microseconds, 142 years, at the latest: one
  -- that max was lowered for by far may not take longer, so that all times are
  -- exact.
  if stored * window > 2 ^ 52 * max * 1000000 then
    stored = math.floor(2 ^ 52 * max * 1000000 / window)
  end
  if since > clock then
    at = since
  end
  local drained = (at - since) * max * 1000000 / window
  level = stored - (drained - drained % 1)
  if level <= 0 then
    level = 0
  else
    if level < held then
      rest = rest * (level / held)
      while rest < 2 ^ 39 do
        rest, halvings = rest * 2, halvings + 1
      end
      rest = rest - rest % 1 - 1
      if halvings >= 8192 then -- of what was charged before next to nothing is left
        begun, halvings, rest = at, 0, 2 ^ 40 - 1
      end
    end
    mark = (halvings + 1) * 2 ^ 40 - 1 - rest
  end
else
  since, stored = clock, 0
end
local most = (param - cost) * 1000000
room = (param * 1000000 - level) / 1000000
room = room - room % 1
--- insert fair
local empty
local gaps, gap, early -- pairs; which of them cost fits; and where that begins
local moved -- gaps are to be written
if more >= 0 and state and #state > 44 then
  gaps, moved = {}, true
  local of_window, of_max = number('>I7I7', state, 45)
  if level > 0 and of_window == window and of_max == max then
    for place = 59, #state - 13, 14 do
      local stop, events = number('>I7I7', state, place)
      events = math.min(events, math.floor((stop - at) * max / window + math.min(1, max / window)))
      if stop > at and events > 0 then
        gaps[#gaps + 1], gaps[#gaps + 2] = stop, events
        room, moved = room + events, nil
        if not early and cost > 0 and events >= cost then
          gap, early = #gaps - 1, math.max(at, stop - math.floor(events * window / max))
        end
      end
    end
  end
end
if level > most or more >= 0 or not charging then
  empty = since + ceil(stored * window / (max * 1000000))
  if level > 0 then
    reset = empty - clock
  end
  if early and early - at <= more then
    if early > at then
      delay = early - clock
    end
  elseif level > most or more >= 0 and empty - at > more then
    local turn = at + 1
    if more >= 0 and empty - more > turn then
      turn = empty - more
    end
    local function fits(at)
      return stored - math.floor((at - since) * max * 1000000 / window) <= math.max(0, most)
    end
    local free = math.max(turn, since + ceil((stored - most) * window / (max * 1000000)))
    -- Rounding may have missed the first microsecond that fits by one.
    while not fits(free) do
      free = free + 1
    end
    while free > turn and fits(free - 1) do
      free = free - 1
    end
    if early then
      free = math.min(free, early - more)
    end
    retry = free - clock
  elseif more >= 0 and cost > 0 and empty > at then
    delay = empty - clock
  end
end
--- charge
--- reads at ceil clock cost early empty gap gaps level max more param
--- reads stop window
--- sets at delay fresh level mark moved reset turn_end
local fresh = level == 0 -- the bucket was empty
local turn_end
if early then
  local stop, events = gaps[gap], gaps[gap + 1]
  events = math.min(events - cost, math.floor((stop - early) * max / window + math.min(1, max / window)) - cost)
  turn_end = math.min(stop, early + ceil(cost * window / max))
  if events > 0 then
    gaps[gap + 1] = events
  else
    table.remove(gaps, gap)
    table.remove(gaps, gap)
  end
  moved = true
else
  level = level + cost * 1000000
end
if level > param * 1000000 then -- a debt; what would take longer to drain is never owed
  level = math.min(level, 2 ^ 62, math.floor(2 ^ 52 * max * 1000000 / window))
end
--- insert write
reset = stop - clock
if more >= 0 then
  delay = (early or math.max(empty, at)) - clock
  mark = at
  at = turn_end or stop
end
--- write
--- reads at begun bytes call expires fresh gaps halvings key level lifetime max
--- reads moved rest slack window
--- sets begun drain expires halvings lasts rest spare stop
local drain = level * window / (max * 1000000)
local stop = at + drain + -drain % 1
local spare = expires and expires - stop
local lasts = spare and spare >= 0 and spare <= slack
if lasts and not moved then
  if fresh then
    begun, halvings, rest = at, 0, 2 ^ 40 - 1
  end
  call('SETRANGE', key, '15', bytes('>I7I8I7I2I5', at, level, begun, halvings, rest))
else
  expires = lasts and expires or stop + slack
  local text = '\3\0\0\0\0\0\0\0' .. bytes('>I7I7I8', expires, at, level)
    .. (fresh and '' or bytes('>I7I2I5', begun, halvings, rest))
  if gaps and gaps[1] then
    text = text .. bytes('>I7I7', window, max)
    for i = 1, #gaps, 2 do
      text = text .. bytes('>I7I7', gaps[i], gaps[i + 1])
    end
  end
  if lasts then
    call('SET', key, text, 'KEEPTTL')
  else
    call('SET', key, text, 'PX', lifetime(expires))
  end
end
--- refund
--- reads at begun ceil charged cost empty gaps halvings held level made_mark mark
--- reads max more moved rest since window
--- sets back closing cost gaps level made moved
local back, made, closing = cost * 1000000, at, nil
cost = 0
--- insert look
--- insert reclaim
if level == 0 then
  back = 0
elseif more >= 0 then
  -- A turn comes back if nobody is behind it: the line ends where it does, but for
  -- what rounding has added since. Else it is a gap. One of before a reset is in no line.
  local behind = empty - made
  if made_mark < begun or behind < 0 then
    back = 0
  elseif behind * 2 * max > window then
    local events = math.min(back / 1000000, math.floor((made - at) * max / window + math.min(1, max / window)))
    back, gaps = 0, gaps or {}
    local place = 1
    while gaps[place] and gaps[place] <= made do
      place = place + 2
    end
    local begins, before = made - math.floor(events * window / max), gaps[place - 2]
    local after = gaps[place] and gaps[place] - math.floor(gaps[place + 1] * window / max)
    if made > at and events > 0 and (not before or before <= begins + 1) and (not after or made <= after + 1) then
      local joins = before and begins - before <= 1
      if after and after - made <= 1 then
        gaps[place + 1] = gaps[place + 1] + events
        if joins then
          gaps[place + 1] = gaps[place + 1] + gaps[place - 1]
          table.remove(gaps, place - 2)
          table.remove(gaps, place - 2)
        end
      elseif joins then
        gaps[place - 2], gaps[place - 1] = made, gaps[place - 1] + events
      elseif #gaps < 128 then
        table.insert(gaps, place, events)
        table.insert(gaps, place, made)
      else
        events = 0
      end
      closing = events > 0
    end
  end
elseif made < begun or made > since or made_mark > mark then
  back = 0
elseif made ~= since or charged * 1000000 ~= held then -- others are in the bucket
  local lost = made_mark % 2 ^ 40
  local ratio = rest / (2 ^ 40 - 1 - lost) * 2 ^ ((made_mark - lost) / 2 ^ 40 - halvings)
  local most = ceil(charged * 1000000 * ratio)
  if most < level and level < held then
    most = most - 1 -- rounded down
  end
  back = math.min(back, most)
end
if back > 0 or closing then
  local fresh = false
  level = back < level and level - back or 0
  while gaps and gaps[1] and (at + level * window / (max * 1000000) - gaps[#gaps - 1]) * 2 * max <= window do
    level = math.max(0, level - gaps[#gaps] * 1000000)
    gaps[#gaps], gaps[#gaps - 1] = nil, nil
    moved = true
  end
  moved = moved or closing
  --- insert write
end
--- outcome
--- reads at delay mark reset
return reset, at, delay, mark
--- charged
--- reads mark n replies reset room
--- sets n
if mark == 0 then
  replies[n + 1], replies[n + 2] = room, reset
  n = n + 2
else
  replies[n + 1], replies[n + 2], replies[n + 3] = room, -reset, mark
  n = n + 3
end
--- long mark
--- reads at mark n replies
--- sets n
if mark > 0 and at and at > 0 then
  replies[n - 1], replies[n + 1] = -at, mark
  n = n + 1
end
--- mark
--- reads bytes ends key
--- sets written
local written = redis.pcall('SETRANGE', key, '0', '\3' .. bytes('>I7', ends))
--- drop
--- insert unmark
--- whole
--- reads ceil clock level max since stored window
--- sets reset
if level > 0 then
  reset = since + ceil(stored * window / (max * 1000000)) - clock
end
