-- Token bucket and leaky bucket. Both are a level that drains by max in a
-- window and may not rise above a burst: what a token bucket lacks of being
-- full is what a leaky bucket holds.
-- (Turner, "New directions in communications", IEEE Communications 24, 1986.)
--
-- KEY    a STRING, "expires since level": until when the key lives and the time
--        that the level was true at, both in microseconds and 16 digits; and
--        the level in millionths of an event. It is a whole number, rounded up,
--        so that rounding never admits what should be denied: short integers
--        are what takes Redis and Lua least time to write and to read. Before
--        all that, if there is a block, "-" and its end in 16 digits.
-- PARAM  the burst.
-- MORE   from 0 on, the bucket is a queue: calls leave it evenly, and one that
--        would have to wait for longer than this is denied. -1: it is not.
-- CALLS  look: GET. charge: SET, which keeps the expiry while that is late
--        enough and at most slack later than need be. Calls in a row share one
--        MGET; what it does not find, or is no STRING, GET looks at.
--- gather
--- insert strings
--- look
at = clock
--- insert string
local stored, since, expires, level = 0, clock, nil, 0
if state then
  expires, since, stored = sub(state, 1, 16), sub(state, 18, 33) + 0, sub(state, 34) + 0
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
local state = ' ' .. (at == clock and clock_text or text(at))
  .. format(level < 2 ^ 31 and ' %d' or ' %.0f', level)
local spare = expires and expires - stop
if spare and spare >= 0 and spare <= slack then
  call('SET', key, expires .. state, 'KEEPTTL')
else
  call('SET', key, text(stop + slack) .. state, 'PX', lifetime(stop + slack))
end
reset = stop - clock
if more >= 0 then
  delay = math.max(empty, at) - clock
end
--- refund
cost = -cost
--- insert look
if state then
  --- insert charge
end
--- mark
--- insert string mark
--- whole
if level > 0 then
  reset = since + ceil(stored * window / (max * 1000000)) - clock
end
