-- Fixed window that starts with its first event.
--
-- KEY    a STRING, "start count": when the window began, in microseconds, and
--        how much of it is used.
-- CALLS  look: GET. charge: SET.
local function window_state(key)
  local state = call('GET', key)
  if state then
    local start, used = string.match(state, '^(%d+) (%d+)$')
    if not start then
      error(FOREIGN, 0)
    end
    return tonumber(start), tonumber(used)
  end
end

local function set_window(key, start, used)
  call('SET', key, text(start) .. format(used < 2 ^ 31 and ' %d' or ' %.0f', used),
    'PX', lifetime(start + window))
end

algorithms.fixed = {
  look = function(key, cost)
    local start, used = window_state(key)
    local at, reset = clock, nil
    if start and clock < start + window then
      at = math.max(clock, start)
      reset = start + window - clock
    else
      start, used = clock, 0
    end
    local room = max - used
    return room, cost > room and reset or nil, reset, at, start, used
  end,

  charge = function(key, cost, at, start, used)
    set_window(key, start, used + cost)
    return start + window - clock, at
  end,
}

if operation == 'refund' then
  algorithms.fixed.refund = function(key, cost, at)
    local start, used = window_state(key)
    local stop = start and start + window
    if start and at >= start and at < stop and clock < stop then
      set_window(key, start, math.max(0, used - cost))
    end
  end
end
