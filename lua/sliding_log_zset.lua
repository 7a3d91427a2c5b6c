-- Sliding log in a ZSET: the exact window (t-W, t].
--
-- KEY    one member an event. Its score is the event's time in microseconds;
--        the member is the same number, raised where needed to be above every
--        earlier member, so that events of one microsecond stay apart and
--        Redis stores them as integers.
-- PARAM  length of a time slice in microseconds: an event's time falls to the
--        start of its slice. 0 keeps times exact.
-- CALLS  look: ZREVRANGE ZCARD ZCOUNT, and ZRANGE for a denial.
--        charge: ZADD PEXPIRE, and ZREMRANGEBYSCORE if events have left.
algorithms.zset = {
  look = function(key, limit)
    local newest = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
    limit.member, limit.newest = tonumber(newest[1]) or 0, tonumber(newest[2]) or 0
    limit.at = math.max(clock, limit.newest)
    limit.edge = text(limit.at - limit.window)
    local inside = 0
    limit.left = 0
    if limit.newest > 0 then
      inside = redis.call('ZCOUNT', key, '(' .. limit.edge, '+inf')
      limit.left = redis.call('ZCARD', key) - inside
    end
    if inside > 0 then
      limit.reset = limit.newest + limit.window - clock
    end
    limit.room = limit.max - inside
    if limit.cost > limit.room then
      local leaver = limit.left + limit.cost - limit.room - 1
      local event = redis.call('ZRANGE', key, leaver, leaver, 'WITHSCORES')
      limit.retry = tonumber(event[2]) + limit.window - clock
    end
  end,

  charge = function(key, limit)
    local at = limit.at
    if limit.param > 0 then
      at = math.max(at - at % limit.param, limit.newest)
    end
    -- First, so that a key of 128 events stays in Redis's compact encoding;
    -- and only if there is something to remove, so that otherwise ZADD is the
    -- first write and a Redis out of memory refuses it with nothing changed.
    if limit.left > 0 then
      redis.call('ZREMRANGEBYSCORE', key, '-inf', limit.edge)
    end
    local member = math.max(limit.at, limit.member + 1)
    -- unpack is safe up to 7,999 values.
    for first = 0, limit.cost - 1, 2000 do
      local events = {}
      for i = first, math.min(first + 2000, limit.cost) - 1 do
        events[#events + 1] = text(at)
        events[#events + 1] = text(member + i)
      end
      redis.call('ZADD', key, unpack(events))
    end
    redis.call('PEXPIRE', key, lifetime(at + limit.window))
    limit.at = at
    limit.reset = at + limit.window - clock
  end,

  refund = function(key, limit)
    -- Events of one time are alike, so any of them will do.
    local at = text(limit.at)
    local left = limit.cost
    while left > 0 do
      local events = redis.call('ZREVRANGEBYSCORE', key, at, at, 'LIMIT', 0, math.min(left, 4000))
      if #events == 0 then
        return
      end
      redis.call('ZREM', key, unpack(events))
      left = left - #events
    end
  end,
}
