-- Sliding log in a ZSET: the exact window (t-W, t].
--
-- KEY    one member an event. Its score is the event's time in microseconds;
--        the member is the same number, raised where needed to be above every
--        earlier member, so that events of one microsecond stay apart and
--        Redis stores them as integers.
-- PARAM  length of a time slice in microseconds: an event's time falls to the
--        start of its slice. 0 keeps times exact.
-- CALLS  look: ZREVRANGE ZCARD ZCOUNT, for the newest member, how many there
--        are, and how many have left; ZRANGE for a denial; ZSCORE where the
--        newest event's own time is wanted, and that it is not above its
--        member does not tell enough: in slices, if the clock has not passed
--        the member, and if nothing is charged.
--        charge: ZADD PEXPIRE, and ZREMRANGEBYSCORE if events have left.
algorithms.zset = {
  look = function(key, cost, charging)
    local member = call('ZREVRANGE', key, '0', '0')[1]
    if not member then
      return max, nil, nil, clock, 0, 0, 0
    end
    local stored, at, newest = call('ZCARD', key), clock, 0
    local number = tonumber(member) or error(FOREIGN, 0)
    if number >= clock or param > 0 or not charging then
      newest = tonumber(call('ZSCORE', key, member))
      at = math.max(clock, newest)
    end
    local edge = at - window
    local left = call('ZCOUNT', key, '-inf', text(edge))
    local room, retry, reset = max - stored + left, nil, nil
    if cost > room then
      local leaver = left + cost - room - 1
      local event = call('ZRANGE', key, leaver, leaver, 'WITHSCORES')
      retry = tonumber(event[2]) + window - clock
    end
    if stored > left and (retry or not charging) then
      newest = newest > 0 and newest or tonumber(call('ZSCORE', key, member))
      reset = newest + window - clock
    end
    return room, retry, reset, at, newest, number, left
  end,

  charge = function(key, cost, at, newest, member, left)
    local now = at
    if param > 0 then
      at = math.max(at - at % param, newest)
    end
    -- First, so that a key of 128 events stays in Redis's compact encoding;
    -- and only if there is something to remove, so that otherwise ZADD is the
    -- first write and a Redis out of memory refuses it with nothing changed.
    if left > 0 then
      call('ZREMRANGEBYSCORE', key, '-inf', text(now - window))
    end
    member = math.max(now, member + 1)
    local event = text(at)
    if cost == 1 then
      call('ZADD', key, event, text(member))
    else
      -- unpack is safe up to 7,999 values.
      for first = 0, cost - 1, 2000 do
        local events = {}
        for i = first, math.min(first + 2000, cost) - 1 do
          events[#events + 1] = event
          events[#events + 1] = format('%.0f', member + i)
        end
        call('ZADD', key, unpack(events))
      end
    end
    call('PEXPIRE', key, lifetime(at + window))
    return at + window - clock, at
  end,
}

if operation == 'refund' then
  algorithms.zset.refund = function(key, cost, at)
    -- Events of one time are alike, so any of them will do.
    at = text(at)
    while cost > 0 do
      local events = call('ZREVRANGEBYSCORE', key, at, at, 'LIMIT', '0', math.min(cost, 4000))
      if #events == 0 then
        return
      end
      call('ZREM', key, unpack(events))
      cost = cost - #events
    end
  end
end
