-- Token bucket and leaky bucket. Both are a level that drains by max in a
-- window and may not rise above a burst: what a token bucket lacks of being
-- full is what a leaky bucket holds.
-- (Turner, "New directions in communications", IEEE Communications 24, 1986.)
--
-- KEY    a STRING: a byte that is 3, and then numbers of 7 bytes, the highest byte
--        first: the end of a block, or 0; until when the key lives; the time that the
--        level was true at; and, in 8 bytes, the level in millionths of an event. It is
--        a whole number, rounded up, so that rounding never admits what should be
--        denied. Then, unless the bucket was empty before the last charge, since when
--        it was not; and the share, in 2 bytes how often it was halved and in 5 bytes
--        the rest. A key that holds no more than a block ends before the second number.
--
-- What a bucket holds drains evenly: when the level drains, all charges in it lose the
-- same share of themselves. So share is what is left by now of a charge that was made
-- when the bucket was last empty, and what is left of a later one is the share now by
-- the share then. So what is left of all charges together is the level, and they can be
-- given back in any order. A share is rest / 2^(40 + halvings), with a rest below 2^40,
-- and is rounded down. What is given back is rounded to a millionth of an event: down,
-- but up while nothing drains, so that room for whole events stays so.
--
-- AT     the time of the charge; of a queue, the end of the call's turn.
-- MARK   the share when the charge was made, as a number that grows while the share
--        falls: (halvings + 1) * 2^40 - 1 - rest. 0 is all of it. Of a queue, the time
--        of the charge.
-- PARAM  the burst.
-- MORE   from 0 on, the bucket is a queue: calls leave it evenly, and one that
--        would have to wait for longer than this is denied. -1: it is not.
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
  if #state == 44 then
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
--- reads ceil charging clock cost halvings max more param rest since stored window
--- sets at begun delay empty expires halvings held level mark most reset rest
--- sets retry room since stored
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
local empty
if level > most or more >= 0 or not charging then
  empty = since + ceil(stored * window / (max * 1000000))
  if level > 0 then
    reset = empty - clock
  end
  if level > most or more >= 0 and empty - at > more then
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
    retry = free - clock
  elseif more >= 0 and empty > at then
    delay = empty - clock
  end
end
--- charge
--- reads at clock cost empty level max more param stop window
--- sets at delay fresh level mark reset
local fresh = level == 0 -- the bucket was empty
level = level + cost * 1000000
if level > param * 1000000 then -- a debt; what would take longer to drain is never owed
  level = math.min(level, 2 ^ 62, math.floor(2 ^ 52 * max * 1000000 / window))
end
--- insert write
reset = stop - clock
if more >= 0 then
  delay = math.max(empty, at) - clock
  mark = at
  at = stop
end
--- write
--- reads at begun bytes call expires fresh halvings key level lifetime max rest
--- reads slack window
--- sets begun drain expires halvings rest spare stop
local drain = level * window / (max * 1000000)
local stop = at + drain + -drain % 1
local spare = expires and expires - stop
if spare and spare >= 0 and spare <= slack then
  if fresh then
    begun, halvings, rest = at, 0, 2 ^ 40 - 1
  end
  call('SETRANGE', key, '15', bytes('>I7I8I7I2I5', at, level, begun, halvings, rest))
else
  expires = stop + slack
  call('SET', key, '\3\0\0\0\0\0\0\0' .. bytes('>I7I7I8', expires, at, level)
    .. (fresh and '' or bytes('>I7I2I5', begun, halvings, rest)), 'PX', lifetime(expires))
end
--- refund
--- reads at begun ceil charged cost empty halvings held level made_mark mark max
--- reads more rest since window
--- sets back cost level made
local back, made = cost * 1000000, at
cost = 0
--- insert look
if level == 0 then
  back = 0
elseif more >= 0 then
  -- A turn comes back if nobody is behind it: the line ends where it does, but for
  -- what rounding has added since. One of before a reset is in no line.
  local behind = empty - made
  if made_mark < begun or behind < 0 or behind * 2 * max > window then
    back = 0
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
if back > 0 then
  local fresh = false
  level = back < level and level - back or 0
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
