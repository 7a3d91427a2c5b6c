-- Sliding counter over layered buckets: the decisions of equal buckets as wide
-- as the fine ones, but a look reads the coarse buckets, and of the fine ones
-- only those in the coarse bucket that the window's edge runs through.
--
-- KEY    a HASH: "c" and the end of a coarse bucket -> its count, "f" and the
--        end of a fine one -> its count; "at" -> the time of the newest event.
--        The key's name holds window and layers, so that the buckets of one
--        key always line up.
-- PARAM  the width of a fine bucket in microseconds.
-- MORE   how many fine buckets make a coarse one.
-- CALLS  look: HGET HMGET HMGET, and HMGET for a denial.
--        charge: HINCRBY HINCRBY HSET PEXPIRE, and HKEYS HDEL for a new coarse
--        bucket.
local function counts(key, layer, first, width, last)
  local fields = {}
  for stop = first, last, width do
    fields[#fields + 1] = layer .. format('%.0f', stop)
  end
  if #fields == 0 then
    return {}, 0
  end
  local found, total = call('HMGET', key, unpack(fields)), 0
  for i = 1, #found do
    local count = (found[i] or 0) + 0
    found[i], total = count, total + count
  end
  return found, total
end

algorithms.layered = {
  look = function(key, cost)
    local width = param
    local coarse = width * more
    local newest = (call('HGET', key, 'at') or 0) + 0
    local at = math.max(clock, newest)
    -- The first microsecond inside the window, and its fine and coarse bucket.
    local first = at - window + 1
    local fine_stop = first - first % width + width
    local coarse_stop = first - first % coarse + coarse
    local last = at - at % coarse + coarse
    local parts, parts_total = counts(key, 'f', fine_stop, width, coarse_stop)
    local whole, whole_total = counts(key, 'c', coarse_stop + coarse, coarse, last)
    local used = parts_total + whole_total
    local room, retry, reset = max - used, nil, nil
    if used > 0 then
      reset = newest - newest % width + width - 1 + window - clock
    end
    if cost > room then
      local free, stop, i = room, fine_stop, 1
      while i <= #parts and free + parts[i] < cost do
        free, stop, i = free + parts[i], stop + width, i + 1
      end
      if i > #parts then
        i, stop = 1, coarse_stop
        while free + whole[i] < cost do
          free, stop, i = free + whole[i], stop + coarse, i + 1
        end
        -- It is within the coarse bucket after stop: look for the fine one.
        parts = counts(key, 'f', stop + width, width, stop + coarse)
        stop, i = stop + width, 1
        while free + parts[i] < cost do
          free, stop, i = free + parts[i], stop + width, i + 1
        end
      end
      retry = stop - 1 + window - clock
    end
    return room, retry, reset, at
  end,

  charge = function(key, cost, at)
    local coarse = param * more
    local fine_stop = at - at % param + param
    local coarse_stop = at - at % coarse + coarse
    local opened = call('HINCRBY', key, 'c' .. format('%.0f', coarse_stop), text(cost)) == cost
    call('HINCRBY', key, 'f' .. format('%.0f', fine_stop), text(cost))
    call('HSET', key, 'at', text(at))
    if opened then
      local gone, edge = {}, at - window
      for _, field in ipairs(call('HKEYS', key)) do
        local stop = string.match(field, '^[cf](%d+)$')
        if stop and tonumber(stop) - 1 <= edge then
          gone[#gone + 1] = field
        end
      end
      if #gone > 0 then
        call('HDEL', key, unpack(gone))
      end
    end
    local last = fine_stop - 1 + window
    call('PEXPIRE', key, lifetime(last))
    return last - clock, fine_stop - 1
  end,
}

if operation == 'refund' then
  algorithms.layered.refund = function(key, cost, at)
    local coarse = param * more
    local part = 'f' .. text(at - at % param + param)
    local whole = 'c' .. text(at - at % coarse + coarse)
    local back = math.min(cost, tonumber(call('HGET', key, part) or 0))
    if back > 0 then
      call('HINCRBY', key, part, text(-back))
      call('HINCRBY', key, whole, text(-back))
    end
  end
end
