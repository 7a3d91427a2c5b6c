-- Token bucket and leaky bucket. Both are a level that drains by max in a
-- window and may not rise above a burst: what a token bucket lacks of being
-- full is what a leaky bucket holds.
-- (Turner, "New directions in communications", IEEE Communications 24, 1986.)
--
-- KEY    a STRING, "expires since level": until when the key lives and the time
--        that the level was true at, both in microseconds and 16 digits; and
--        the level in millionths of an event. It is a whole number, rounded up,
--        so that rounding never admits what should be denied: short integers
--        are what takes Redis and Lua least time to write and to read.
-- PARAM  the burst.
-- MORE   from 0 on, the bucket is a queue: calls leave it evenly, and one that
--        would have to wait for longer than this is denied. -1: it is not.
-- CALLS  look: GET. charge: SET, which keeps the expiry while that is late
--        enough and at most slack later than need be.
local UNIT = 1000000

-- How long a level takes to drain.
local function drain(level)
  return math.ceil(level * window / (max * UNIT))
end

-- What a level has become after a time.
local function after(level, time)
  level = level - math.floor(time * max * UNIT / window)
  return level > 0 and level or 0
end

algorithms.bucket = {
  look = function(key, cost, charging)
    local state = call('GET', key)
    local stored, since, expires = 0, clock, nil
    if state then
      stored = string.byte(state, 34) == 32 and tonumber(string.sub(state, 35)) or error(FOREIGN, 0)
      since = string.sub(state, 18, 33) + 0
      expires = string.sub(state, 1, 16)
      -- A bucket is empty after 2^52 microseconds, 142 years, at the latest:
      -- one that max was lowered for by far may not take longer, so that all
      -- times are exact.
      if stored * window > 2 ^ 52 * max * UNIT then
        stored = math.floor(2 ^ 52 * max * UNIT / window)
      end
    end
    local at = since > clock and since or clock
    local level = after(stored, at - since)
    local most = (param - cost) * UNIT
    local room = math.floor((param * UNIT - level) / UNIT)
    local empty, reset
    if level > most or more >= 0 or not charging then
      empty = since + drain(stored)
      reset = level > 0 and empty - clock or nil
    end
    if level <= most and (more < 0 or empty - at <= more) then
      return room, nil, reset, at, level, expires, empty
    end
    local turn = at + 1
    if more >= 0 and empty - more > turn then
      turn = empty - more
    end
    local fits = math.max(turn, since + drain(stored - most))
    -- Rounding may have missed the first microsecond that fits by one.
    while after(stored, fits - since) > most do
      fits = fits + 1
    end
    while fits > turn and after(stored, fits - 1 - since) <= most do
      fits = fits - 1
    end
    return room, fits - clock, reset, at, level, expires
  end,

  charge = function(key, cost, at, level, expires, empty)
    level = math.max(0, level + cost * UNIT)
    local stop = at + drain(level)
    local state = (at == clock and clock_text or format('%016.0f', at))
      .. format(level < 2 ^ 31 and ' %d' or ' %.0f', level)
    local spare = expires and expires - stop
    if spare and spare >= 0 and spare <= slack then
      call('SET', key, expires .. ' ' .. state, 'KEEPTTL')
    else
      call('SET', key, format('%016.0f ', stop + slack) .. state, 'PX', lifetime(stop + slack))
    end
    return stop - clock, at, more >= 0 and math.max(empty, at) - clock or nil
  end,
}

if operation == 'refund' then
  algorithms.bucket.refund = function(key, cost)
    local _, _, _, at, level, expires, _ = algorithms.bucket.look(key, 0)
    if expires then
      algorithms.bucket.charge(key, -cost, at, level, expires, at)
    end
  end
end
