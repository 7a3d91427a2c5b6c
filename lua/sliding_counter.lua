-- Sliding counter over buckets of equal or of adaptive width. A bucket counts
-- until its last microsecond has left the window, so that no window ever holds
-- more than max; a bucket's oldest events are counted for up to its width too
-- long.
--
-- KEY    a HASH: the end of a bucket (its first microsecond after it) -> its
--        count; "at" -> the time of the newest event; "from" -> where the
--        newest bucket starts; "until" -> the end of a block.
-- PARAM  the width of a bucket in microseconds; 0 adapts it.
-- CALLS  look: HGETALL. charge: HSET PEXPIRE; HDEL if buckets have left, and UNLINK
--        before HSET if all have. There are at most 1,000 in a window, or 1,024
--        adaptive ones, and so many more that have left.
--
-- Adaptive: a new bucket is half as wide as the one before if that holds an
-- eighth of max, twice if it holds less than a 32nd, from a 1024th to a 16th of
-- the window; the first one takes a 64th.
--- look
local fields = call('HGETALL', key)
local newest, start, stop, count = 0, nil, 0, 0
for i = 1, #fields, 2 do
  local field, value = fields[i], fields[i + 1] + 0
  if field == 'at' then
    newest = value
  elseif field == 'from' then
    start = value
  --- insert until
  else
    field = field + 0
    if field > stop then
      stop, count = field, value
    end
  end
  fields[i], fields[i + 1] = field, value
end
at = math.max(clock, newest)
local first = at - window + 1 -- the window's first microsecond
local used, gone = 0, nil
local idle = stop <= first -- all buckets have left
for i = 1, idle and 0 or #fields, 2 do
  local field = fields[i]
  if field ~= 'at' and field ~= 'from' then
    if field > first then
      used = used + fields[i + 1]
    else
      gone = gone or {}
      gone[#gone + 1] = format('%.0f', field)
    end
  end
end
if used > 0 then
  reset = stop - 1 + window - clock
end
room = max - used
if cost > room then
  -- Until the buckets that leave first make room.
  local stops, counts, free, i = {}, {}, room, 0
  for i = 1, #fields, 2 do
    local field = fields[i]
    if field ~= 'at' and field ~= 'from' and field > first then
      stops[#stops + 1], counts[field] = field, fields[i + 1]
    end
  end
  table.sort(stops)
  while free < cost do
    i = i + 1
    free = free + counts[stops[i]]
  end
  retry = stops[i] - 1 + window - clock
end
if stop <= at then
  local width = param
  if width == 0 then
    width = window / 64
    if stop > first and start then
      width = stop - start
      if count * 8 >= max then
        width = width / 2
      elseif count * 32 < max then
        width = width * 2
      end
    end
    width = math.max(1, math.floor(math.min(math.max(width, window / 1024), window / 16)))
  end
  start = at - at % width
  stop, count = start + width, 0
end
--- charge
if idle and #fields > 0 then
  call('UNLINK', key)
end
call('HSET', key,
  'at', format('%.0f', at),
  'from', format('%.0f', start),
  format('%.0f', stop), format('%.0f', count + cost))
if gone then
  for i = 1, #gone, 4000 do
    call('HDEL', key, unpack(gone, i, math.min(i + 3999, #gone)))
  end
end
call('PEXPIRE', key, lifetime(stop - 1 + window))
reset = stop - 1 + window - clock
at = stop - 1
--- refund
local field = format('%.0f', at + 1)
local count = call('HGET', key, field)
if count then
  call('HSET', key, field, format('%.0f', math.max(0, count - cost)))
end
--- until (block)
elseif field == 'until' then
  ends, field = value, 'at' -- which the loops below pass over
--- mark
local written = redis.pcall('HSET', key, 'until', text(ends))
--- drop
call('HDEL', key, 'until')
