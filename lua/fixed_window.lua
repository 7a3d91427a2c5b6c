-- Fixed window that starts with its first event.
--
-- KEY    a STRING, "start count": when the window began, in microseconds, and
--        how much of it is used.
-- CALLS  look: GET. charge: SET.
local function window_state(key)
  local state = redis.call('GET', key)
  if state then
    local start, count = string.match(state, '^(%d+) (%d+)$')
    if not start then
      foreign()
    end
    return tonumber(start), tonumber(count)
  end
end

local function set_window(key, start, count, window)
  redis.call('SET', key, text(start) .. ' ' .. text(count), 'PX', lifetime(start + window))
end

algorithms.fixed = {
  look = function(key, limit)
    limit.start, limit.used = window_state(key)
    if limit.start and clock < limit.start + limit.window then
      limit.at = math.max(clock, limit.start)
      limit.reset = limit.start + limit.window - clock
    else
      limit.at, limit.start, limit.used = clock, clock, 0
    end
    limit.room = limit.max - limit.used
    if limit.cost > limit.room then
      limit.retry = limit.reset
    end
  end,

  charge = function(key, limit)
    set_window(key, limit.start, limit.used + limit.cost, limit.window)
    limit.reset = limit.start + limit.window - clock
  end,

  refund = function(key, limit)
    local start, used = window_state(key)
    local stop = start and start + limit.window
    if start and limit.at >= start and limit.at < stop and clock < stop then
      set_window(key, start, math.max(0, used - limit.cost), limit.window)
    end
  end,
}
