-- Sliding log in a LIST: the same decisions as in a ZSET, in less memory.
--
-- KEY    the time of every event in microseconds, oldest first.
-- PARAM  length of a time slice in microseconds, as for the ZSET.
-- CALLS  look: LINDEX LLEN LINDEX, and LINDEX for a denial; if the oldest event
--        has left, LRANGE over the next ones, and LINDEX in a binary search
--        when more than 32 have left at once.
--        charge: RPUSH PEXPIRE, and LTRIM if events have left.
local function events_left(key, stored, newest, edge)
  if stored == 0 or tonumber(redis.call('LINDEX', key, 0)) > edge then
    return 0
  end
  if newest <= edge then
    return stored
  end
  local head = redis.call('LRANGE', key, 1, 31)
  for i = 1, #head do
    if tonumber(head[i]) > edge then
      return i
    end
  end
  -- The event at low has left, the one at high has not.
  local low, high = 31, stored - 1
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if tonumber(redis.call('LINDEX', key, middle)) > edge then
      high = middle
    else
      low = middle
    end
  end
  return high
end

algorithms.list = {
  look = function(key, limit)
    limit.newest = tonumber(redis.call('LINDEX', key, -1) or 0)
    limit.at = math.max(clock, limit.newest)
    local stored = redis.call('LLEN', key)
    limit.left = events_left(key, stored, limit.newest, limit.at - limit.window)
    local inside = stored - limit.left
    if inside > 0 then
      limit.reset = limit.newest + limit.window - clock
    end
    limit.room = limit.max - inside
    if limit.cost > limit.room then
      local leaver = limit.left + limit.cost - limit.room - 1
      limit.retry = tonumber(redis.call('LINDEX', key, leaver)) + limit.window - clock
    end
  end,

  charge = function(key, limit)
    local at = limit.at
    if limit.param > 0 then
      at = math.max(at - at % limit.param, limit.newest)
    end
    local event = text(at)
    -- unpack is safe up to 7,999 values.
    for first = 1, limit.cost, 4000 do
      local events = {}
      for i = first, math.min(first + 3999, limit.cost) do
        events[#events + 1] = event
      end
      redis.call('RPUSH', key, unpack(events))
    end
    if limit.left > 0 then
      redis.call('LTRIM', key, text(limit.left), -1)
    end
    redis.call('PEXPIRE', key, lifetime(at + limit.window))
    limit.at = at
    limit.reset = at + limit.window - clock
  end,

  refund = function(key, limit)
    redis.call('LREM', key, text(-limit.cost), text(limit.at))
  end,
}
