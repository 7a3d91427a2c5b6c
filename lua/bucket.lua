-- Token bucket and leaky bucket. Both are a level that drains by max in a
-- window and may not rise above a burst: what a token bucket lacks of being
-- full is what a leaky bucket holds.
-- (Turner, "New directions in communications", IEEE Communications 24, 1986.)
--
-- KEY    a STRING, "level time": the level as a binary floating point number in
--        17 digits, which is exact, and the microsecond it was true at.
-- PARAM  the burst.
-- WAIT   from 0 on, the bucket is a queue: calls leave it evenly, and one that
--        would have to wait for longer than this is denied. -1: it is not.
-- CALLS  look: GET. charge: SET.
local function load_bucket(key, limit)
  local state = redis.call('GET', key)
  limit.level, limit.since = 0, clock
  if state then
    local level, since = string.match(state, '^(%S+) (%d+)$')
    limit.level, limit.since = tonumber(level), tonumber(since)
    if not limit.level then
      foreign()
    end
  end
  return state
end

-- A bucket is empty after 2^52 microseconds, 142 years, at the latest: one that
-- max was lowered for by far may not take longer, so that all times are exact.
local function level_at(limit, at)
  local level = math.min(limit.level, 2 ^ 52 * limit.max / limit.window)
  return math.max(0, level - (at - limit.since) * limit.max / limit.window)
end

-- How long a level takes to drain, rounded up.
local function drain(limit, level)
  return math.ceil(level * limit.window / limit.max)
end

local function fits(limit, at)
  local level = level_at(limit, at)
  return level + limit.cost <= limit.param
    and (limit.wait < 0 or drain(limit, level) <= limit.wait)
end

local function set_bucket(key, limit, level, at)
  redis.call('SET', key, string.format('%.17g ', level) .. text(at),
    'PX', lifetime(at + drain(limit, level)))
end

algorithms.bucket = {
  look = function(key, limit)
    load_bucket(key, limit)
    limit.at = math.max(clock, limit.since)
    local level = level_at(limit, limit.at)
    limit.room = math.floor(limit.param - level)
    if level > 0 then
      limit.reset = limit.at + drain(limit, level) - clock
    end
    if not fits(limit, limit.at) then
      local wait = drain(limit, math.max(0, level + limit.cost - limit.param))
      if limit.wait >= 0 then
        wait = math.max(wait, drain(limit, level) - limit.wait)
      end
      -- Rounding may have missed the first microsecond that fits by one.
      local at = limit.at + math.max(1, wait)
      while not fits(limit, at) do
        at = at + 1
      end
      while at - 1 > limit.at and fits(limit, at - 1) do
        at = at - 1
      end
      limit.retry = at - clock
    end
  end,

  charge = function(key, limit)
    local level = level_at(limit, limit.at)
    if limit.wait >= 0 then
      limit.delay = limit.at + drain(limit, level) - clock
    end
    level = level + limit.cost
    set_bucket(key, limit, level, limit.at)
    limit.reset = limit.at + drain(limit, level) - clock
  end,

  refund = function(key, limit)
    if load_bucket(key, limit) then
      local at = math.max(clock, limit.since)
      set_bucket(key, limit, math.max(0, level_at(limit, at) - limit.cost), at)
    end
  end,
}
