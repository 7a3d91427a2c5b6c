-- Token bucket and leaky bucket. Both are a level that drains by max in a
-- window and may not rise above a burst: what a token bucket lacks of being
-- full is what a leaky bucket holds.
-- (Turner, "New directions in communications", IEEE Communications 24, 1986.)
--
-- KEY    a STRING: a byte that is 3, and then numbers of 7 bytes, the highest byte
--        first: the end of a block, or 0; until when the key lives; the time that the
--        level was true at; and, in 8 bytes, the level in millionths of an event. It is
--        a whole number, rounded up, so that rounding never admits what should be
--        denied. A key that holds no more than a block ends behind that.
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
local state
--- insert read
local expires, since, stored
if state then
  local kind, ended
  if #state == 30 then
    kind, ended, expires, since, stored = number('>I1I7I7I7I8', state, 1)
    --- insert ended
  --- insert short
  end
  if kind ~= 3 then
    error('a text of another kind')
  end
end
--- look
--- insert open
at = clock
local level = 0
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
  if level < 0 then
    level = 0
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
  end
end
--- charge
level = level + cost * 1000000
if level < 0 then
  level = 0
elseif level > param * 1000000 then -- a debt; what would take longer to drain is never owed
  level = math.min(level, 2 ^ 62, math.floor(2 ^ 52 * max * 1000000 / window))
end
local drain = level * window / (max * 1000000)
local stop = at + drain + -drain % 1
local spare = expires and expires - stop
if spare and spare >= 0 and spare <= slack then
  call('SETRANGE', key, '15', bytes('>I7I8', at, level))
else
  expires = stop + slack
  call('SET', key, '\3\0\0\0\0\0\0\0' .. bytes('>I7I7I8', expires, at, level), 'PX', lifetime(expires))
end
reset = stop - clock
if more >= 0 then
  delay = math.max(empty, at) - clock
end
--- refund
cost = -cost
--- insert look
if expires then
  --- insert charge
end
--- mark
local written = redis.pcall('SETRANGE', key, '0', '\3' .. bytes('>I7', ends))
--- drop
--- insert unmark
--- whole
if level > 0 then
  reset = since + ceil(stored * window / (max * 1000000)) - clock
end
