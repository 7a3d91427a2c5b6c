-- Sliding counter over buckets of equal or of adaptive width. A bucket counts
-- until its last microsecond has left the window, so that no window ever holds
-- more than max; a bucket's oldest events are counted for up to its width too
-- long.
--
-- KEY    a HASH: the end of a bucket (its first microsecond after it) -> its
--        count; "at" -> the time of the newest event; "from" -> where the
--        newest bucket starts.
-- PARAM  the width of a bucket in microseconds; 0 adapts it.
-- CALLS  look: HGETALL. charge: HSET PEXPIRE, and HDEL if buckets have left.
--
-- Adaptive: a new bucket is half as wide as the one before if that holds an
-- eighth of max, twice if it holds less than a 32nd, from a 1024th to a 16th of
-- the window; the first one takes a 64th.
local function new_width(start, stop, count)
  if param > 0 then
    return param
  end
  local width = window / 64
  if start then
    width = stop - start
    if count * 8 >= max then
      width = width / 2
    elseif count * 32 < max then
      width = width * 2
    end
  end
  width = math.min(math.max(width, window / 1024), window / 16)
  return math.max(1, math.floor(width))
end

-- The time until the buckets that leave first make room for cost. stops and
-- counts are those of the window.
local function leaving(stops, counts, room, cost)
  table.sort(stops)
  local i = 0
  while room < cost do
    i = i + 1
    room = room + counts[stops[i]]
  end
  return stops[i] - 1 + window - clock
end

algorithms.counter = {
  look = function(key, cost)
    local fields = call('HGETALL', key)
    local newest, start, stop, count = 0, nil, 0, 0
    for i = 1, #fields, 2 do
      local field, value = fields[i], fields[i + 1] + 0
      if field == 'at' then
        newest = value
      elseif field == 'from' then
        start = value
      else
        field = field + 0
        if field > stop then
          stop, count = field, value
        end
      end
      fields[i], fields[i + 1] = field, value
    end
    local at = math.max(clock, newest)
    local first = at - window + 1 -- the window's first microsecond
    local used, gone = 0, nil
    for i = 1, #fields, 2 do
      local field = fields[i]
      if field ~= 'at' and field ~= 'from' then
        if field > first then
          used = used + fields[i + 1]
        else
          gone = gone or {}
          gone[#gone + 1] = text(field)
        end
      end
    end
    local reset, retry
    if used > 0 then
      reset = stop - 1 + window - clock
    end
    local room = max - used
    if cost > room then
      local stops, counts = {}, {}
      for i = 1, #fields, 2 do
        local field = fields[i]
        if field ~= 'at' and field ~= 'from' and field > first then
          stops[#stops + 1], counts[field] = field, fields[i + 1]
        end
      end
      retry = leaving(stops, counts, room, cost)
    end
    if stop <= at then
      local width = new_width(stop > first and start, stop, count)
      start = at - at % width
      stop, count = start + width, 0
    end
    return room, retry, reset, at, start, stop, count, gone
  end,

  charge = function(key, cost, at, start, stop, count, gone)
    call('HSET', key,
      'at', text(at),
      'from', format('%.0f', start),
      format('%.0f', stop), format('%.0f', count + cost))
    if gone then
      for first = 1, #gone, 4000 do
        call('HDEL', key, unpack(gone, first, math.min(first + 3999, #gone)))
      end
    end
    local last = stop - 1 + window
    call('PEXPIRE', key, lifetime(last))
    return last - clock, stop - 1
  end,
}

if operation == 'refund' then
  algorithms.counter.refund = function(key, cost, at)
    local field = text(at + 1)
    local count = call('HGET', key, field)
    if count then
      call('HSET', key, field, format('%.0f', math.max(0, count - cost)))
    end
  end
end
