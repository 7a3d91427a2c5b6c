-- Sliding log in a LIST: the same decisions as in a ZSET, in less memory.
--
-- KEY    the time of every event in microseconds, oldest first.
-- PARAM  length of a time slice in microseconds, as for the ZSET.
-- CALLS  look: LINDEX LLEN LINDEX, for the newest event, how many there are,
--        and the oldest, which says that none has left; and LINDEX for a
--        denial. If k events have left, LINDEX about 2 log k times for the
--        last of them, which is once for the first.
--        charge: RPUSH, LTRIM if events have left, and PEXPIRE if the newest
--        event is not of the same stretch of slack, see prelude.lua.
algorithms.list = {
  look = function(key, cost)
    local newest = call('LINDEX', key, '-1')
    if not newest then
      return max, nil, nil, clock, 0, 0
    end
    newest = tonumber(newest) or error(FOREIGN, 0)
    local at = newest > clock and newest or clock
    local edge = at - window
    local stored, left, reset = call('LLEN', key), 0, nil
    if newest <= edge then
      left = stored
    else
      reset = newest + window - clock
      if stored > 1 and call('LINDEX', key, '0') + 0 <= edge then
        -- Those that have left are few unless the key was idle for a while.
        local low, high = 0, 1 -- the event at low has left
        while high < stored - 1 and call('LINDEX', key, high) + 0 <= edge do
          low, high = high, high * 2
        end
        high = math.min(high, stored - 1) -- the one at high has not
        while high - low > 1 do
          local middle = math.floor((low + high) / 2)
          if call('LINDEX', key, middle) + 0 > edge then
            high = middle
          else
            low = middle
          end
        end
        left = high
      end
    end
    local room = max - stored + left
    if cost > room then
      local leaver = left + cost - room - 1
      return room, call('LINDEX', key, leaver) + window - clock, reset, at
    end
    return room, nil, reset, at, newest, left
  end,

  charge = function(key, cost, at, newest, left)
    if param > 0 then
      at = math.max(at - at % param, newest)
    end
    local event = text(at)
    if cost == 1 then
      call('RPUSH', key, event)
    else
      -- unpack is safe up to 7,999 values.
      for first = 1, cost, 4000 do
        local events = {}
        for i = 1, math.min(4000, cost - first + 1) do
          events[i] = event
        end
        call('RPUSH', key, unpack(events))
      end
    end
    if left > 0 then
      call('LTRIM', key, left, '-1')
    end
    -- The first event of a stretch of slack sets the expiry for all of it.
    if newest < at - at % slack then
      call('PEXPIRE', key, lifetime(at + window + slack))
    end
    return at + window - clock, at
  end,
}

if operation == 'refund' then
  algorithms.list.refund = function(key, cost, at)
    call('LREM', key, format('%.0f', -cost), text(at))
  end
end
