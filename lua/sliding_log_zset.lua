-- Sliding log in a ZSET: the exact window (t-W, t].
--
-- KEY    one member an event. Its score is the event's time in microseconds.
--        The members of a charge are the numbers up to the time of the charge,
--        raised where needed to be above every earlier member, so that events
--        of one microsecond stay apart and Redis stores them as integers. The
--        newest member is never below its event's time.
-- PARAM  length of a time slice in microseconds: an event's time falls to the
--        start of its slice. 0 keeps times exact.
-- CALLS  look: ZREVRANGE ZCARD ZCOUNT, for the newest member, how many there
--        are, and how many have left; ZRANGE for a denial; ZSCORE where the
--        newest event's own time is wanted, and that it is not above its
--        member does not tell enough: in slices, if the clock has not passed
--        the member, and if nothing is charged.
--        charge: ZADD, ZREMRANGEBYSCORE if events have left, and PEXPIRE if
--        the newest member is not of the same stretch of slack, see prelude.lua.
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
    return room, retry, reset, at, newest, stored > left and number or 0, left
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
    local last = math.max(now, member + cost)
    local event = text(at)
    if cost == 1 then
      call('ZADD', key, event, text(last))
    else
      -- unpack is safe up to 7,999 values.
      for first = last - cost, last - 1, 2000 do
        local events = {}
        for i = first + 1, math.min(first + 2000, last) do
          events[#events + 1] = event
          events[#events + 1] = format('%.0f', i)
        end
        call('ZADD', key, unpack(events))
      end
    end
    -- The first charge of a stretch of slack sets the expiry for all of it.
    if member < last - last % slack then
      call('PEXPIRE', key, lifetime(last + window + slack))
    end
    return at + window - clock, at
  end,
}

if operation == 'refund' then
  algorithms.zset.refund = function(key, cost, at)
    -- Events of one time are alike, but the newest member is the last to go.
    at = text(at)
    while cost > 0 do
      local events = call('ZRANGEBYSCORE', key, at, at, 'LIMIT', '0', math.min(cost, 4000))
      if #events == 0 then
        return
      end
      call('ZREM', key, unpack(events))
      cost = cost - #events
    end
  end
end
