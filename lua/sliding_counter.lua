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
local function new_width(limit, newest)
  if limit.param > 0 then
    return limit.param
  end
  local width = limit.window / 64
  if newest then
    width = newest.stop - newest.start
    if newest.count * 8 >= limit.max then
      width = width / 2
    elseif newest.count * 32 < limit.max then
      width = width * 2
    end
  end
  width = math.min(math.max(width, limit.window / 1024), limit.window / 16)
  return math.max(1, math.floor(width))
end

algorithms.counter = {
  look = function(key, limit)
    local fields = redis.call('HGETALL', key)
    local buckets, newest = {}, { at = 0, stop = 0, count = 0 }
    for i = 1, #fields, 2 do
      if fields[i] == 'at' then
        newest.at = tonumber(fields[i + 1])
      elseif fields[i] == 'from' then
        newest.start = tonumber(fields[i + 1])
      else
        local stop, count = tonumber(fields[i]), tonumber(fields[i + 1])
        buckets[#buckets + 1] = { stop = stop, count = count }
        if stop > newest.stop then
          newest.stop, newest.count = stop, count
        end
      end
    end
    limit.at = math.max(clock, newest.at)
    local edge = limit.at - limit.window
    local inside, used = {}, 0
    limit.gone = {}
    for _, bucket in ipairs(buckets) do
      if bucket.stop - 1 > edge then
        inside[#inside + 1] = bucket
        used = used + bucket.count
      else
        limit.gone[#limit.gone + 1] = text(bucket.stop)
      end
    end
    if newest.stop > limit.at then
      limit.start, limit.stop, limit.count = newest.start, newest.stop, newest.count
    else
      local width = new_width(limit, #inside > 0 and newest)
      limit.start = limit.at - limit.at % width
      limit.stop, limit.count = limit.start + width, 0
    end
    if used > 0 then
      limit.reset = newest.stop - 1 + limit.window - clock
    end
    limit.room = limit.max - used
    if limit.cost > limit.room then
      table.sort(inside, function(a, b) return a.stop < b.stop end)
      local room, i = limit.room, 0
      while room < limit.cost do
        i = i + 1
        room = room + inside[i].count
      end
      limit.retry = inside[i].stop - 1 + limit.window - clock
    end
  end,

  charge = function(key, limit)
    redis.call('HSET', key,
      'at', text(limit.at),
      'from', text(limit.start),
      text(limit.stop), text(limit.count + limit.cost))
    for first = 1, #limit.gone, 4000 do
      redis.call('HDEL', key, unpack(limit.gone, first, math.min(first + 3999, #limit.gone)))
    end
    local last = limit.stop - 1 + limit.window
    redis.call('PEXPIRE', key, lifetime(last))
    limit.reset = last - clock
    limit.at = limit.stop - 1
  end,

  refund = function(key, limit)
    local field = text(limit.at + 1)
    local count = redis.call('HGET', key, field)
    if count then
      count = math.max(0, tonumber(count) - limit.cost)
      redis.call('HSET', key, field, text(count))
    end
  end,
}
