-- Sliding counter over layered buckets: the decisions of equal buckets as wide
-- as the fine ones, but a look reads the coarse buckets, and of the fine ones
-- only those in the coarse bucket that the window's edge runs through.
--
-- KEY    a HASH: "c" and the end of a coarse bucket -> its count, "f" and the
--        end of a fine one -> its count; "at" -> the time of the newest event.
--        The key's name holds window and layers, so that the buckets of one
--        key always line up.
-- PARAM  the width of a fine bucket in microseconds.
-- FINE   how many fine buckets make a coarse one.
-- CALLS  look: HGET HMGET HMGET, and HMGET for a denial.
--        charge: HINCRBY HINCRBY HSET PEXPIRE, and HKEYS HDEL for a new coarse
--        bucket.
local function counts(key, layer, first, width, last)
  local fields = {}
  for stop = first, last, width do
    fields[#fields + 1] = layer .. text(stop)
  end
  if #fields == 0 then
    return {}, 0
  end
  local found, total = redis.call('HMGET', key, unpack(fields)), 0
  for i = 1, #found do
    found[i] = tonumber(found[i]) or 0
    total = total + found[i]
  end
  return found, total
end

algorithms.layered = {
  look = function(key, limit)
    local width = limit.param
    local coarse = width * limit.fine
    local newest = tonumber(redis.call('HGET', key, 'at') or 0)
    limit.at = math.max(clock, newest)
    local edge = limit.at - limit.window
    -- The first microsecond inside the window, and its fine and coarse bucket.
    local first = edge + 1
    local fine_stop = first - first % width + width
    local coarse_stop = first - first % coarse + coarse
    local last = limit.at - limit.at % coarse + coarse
    local fine, fine_total = counts(key, 'f', fine_stop, width, coarse_stop)
    local whole, whole_total = counts(key, 'c', coarse_stop + coarse, coarse, last)
    local used = fine_total + whole_total
    if used > 0 then
      limit.reset = newest - newest % width + width - 1 + limit.window - clock
    end
    limit.room = limit.max - used
    if limit.cost > limit.room then
      local room, stop, i = limit.room, fine_stop, 1
      while i <= #fine and room + fine[i] < limit.cost do
        room, stop, i = room + fine[i], stop + width, i + 1
      end
      if i > #fine then
        i, stop = 1, coarse_stop
        while room + whole[i] < limit.cost do
          room, stop, i = room + whole[i], stop + coarse, i + 1
        end
        -- It is within the coarse bucket after stop: look for the fine one.
        fine = counts(key, 'f', stop + width, width, stop + coarse)
        stop, i = stop + width, 1
        while room + fine[i] < limit.cost do
          room, stop, i = room + fine[i], stop + width, i + 1
        end
      end
      limit.retry = stop - 1 + limit.window - clock
    end
  end,

  charge = function(key, limit)
    local coarse = limit.param * limit.fine
    local fine_stop = limit.at - limit.at % limit.param + limit.param
    local coarse_stop = limit.at - limit.at % coarse + coarse
    local cost = text(limit.cost)
    local opened = redis.call('HINCRBY', key, 'c' .. text(coarse_stop), cost) == limit.cost
    redis.call('HINCRBY', key, 'f' .. text(fine_stop), cost)
    redis.call('HSET', key, 'at', text(limit.at))
    if opened then
      local gone, edge = {}, limit.at - limit.window
      for _, field in ipairs(redis.call('HKEYS', key)) do
        local stop = string.match(field, '^[cf](%d+)$')
        if stop and tonumber(stop) - 1 <= edge then
          gone[#gone + 1] = field
        end
      end
      if #gone > 0 then
        redis.call('HDEL', key, unpack(gone))
      end
    end
    local last = fine_stop - 1 + limit.window
    redis.call('PEXPIRE', key, lifetime(last))
    limit.reset = last - clock
    limit.at = fine_stop - 1
  end,

  refund = function(key, limit)
    local coarse = limit.param * limit.fine
    local fine = 'f' .. text(limit.at - limit.at % limit.param + limit.param)
    local whole = 'c' .. text(limit.at - limit.at % coarse + coarse)
    local cost = math.min(limit.cost, tonumber(redis.call('HGET', key, fine) or 0))
    if cost > 0 then
      redis.call('HINCRBY', key, fine, text(-cost))
      redis.call('HINCRBY', key, whole, text(-cost))
    end
  end,
}
