-- Sliding log in a LIST: the same decisions as in a ZSET, in less memory.
--
-- KEY    the time of every event in microseconds, 16 digits, oldest first. A block:
--        "-" and its end, as the last element; a refund that searches may take it
--        for one more event of the newest time, and then removes all there are.
-- PARAM  length of a time slice in microseconds, as for the ZSET.
-- CALLS  look: LINDEX for the newest event; if it has not left, LLEN LINDEX for
--        how many there are and the oldest, which says that none has left; and
--        LINDEX for a denial. If k events have left, LINDEX about 2 log k times
--        for the last of them, which is once for the first.
--        charge: RPUSH; UNLINK before it if all events have left, which frees
--        the list in a thread of its own; LTRIM if some have; and PEXPIRE if the
--        newest event is not of the same stretch of slack, see prelude.lua.
--        refund: LREM, which looks at one event after the other from the newest
--        on; in a list of more than 1,000 events LINDEX about 2 log n times
--        before it, so that LREM begins at the nearer end and looks at no more
--        than it must.
--
-- A charge removes at most 10,000 events more than it adds: Redis drops them by
-- hundreds. Those that stay have left all the same: nothing counts them.
--- shared
--- insert texts
--- look
room, at = max, clock
local live, left = 0, nil
local newest = call('LINDEX', key, '-1')
--- insert newest
if newest then
  newest = newest + 0
  local first = first
  if newest > clock then
    at = newest
    first = at - window + 1
  end
  if newest >= first then
    live = call('LLEN', key)
    --- insert counted
    if live > 1 and call('LINDEX', key, '0') + 0 < first then
      -- Those that have left are few unless the key was idle for a while. (As
      -- texts, since Redis takes long to make one of a number.)
      local few, high = { '1', '2', '3', '4' }, 1
      while high < live - 1 and few[high] and call('LINDEX', key, few[high]) + 0 < first do
        high = high + 1
      end
      if high < live - 1 and not few[high] then
        local low = high - 1 -- the event at low has left
        while high < live - 1 and call('LINDEX', key, high) + 0 < first do
          low, high = high, high * 2
        end
        high = math.min(high, live - 1) -- the one at high has not
        while high - low > 1 do
          local middle = math.floor((low + high) / 2)
          if call('LINDEX', key, middle) + 0 < first then
            low = middle
          else
            high = middle
          end
        end
      end
      live, left = live - high, few[high] or math.min(high, cost + 10000)
    end
  end
  room = max - live
  if cost > room then
    --- insert leaver
  end
  if (retry or not charging) and live > 0 then
    reset = newest + window - clock
  end
end
--- leaver
retry = call('LINDEX', key, cost - room - 1 - live) + window - clock
--- charge
local event = clock_text
if param > 0 then
  at = math.max(at - at % param, newest or 0)
end
if at ~= clock then
  event = text(at)
end
-- A Redis out of memory refuses RPUSH with nothing changed, unless UNLINK has made
-- room.
if newest and live == 0 then
  call('UNLINK', key)
end
if cost == 1 then
  call('RPUSH', key, event)
else
  -- unpack is safe up to 7,999 values.
  for i = 1, cost, 4000 do
    local events = {}
    for j = 1, math.min(4000, cost - i + 1) do
      events[j] = event
    end
    call('RPUSH', key, unpack(events))
  end
end
if left then
  call('LTRIM', key, left, '-1')
end
-- The first event of a stretch of slack sets the expiry for all of it.
if live == 0 or newest < at - at % slack then
  call('PEXPIRE', key, lifetime(at + window + slack))
end
reset = at + window - clock
--- refund
local stored, count = call('LLEN', key), -cost
if stored > 1000 then
  -- Where the first event stands that is not before a time.
  local function index(time)
    local low, high = 0, stored
    while low < high do
      local middle = math.floor((low + high) / 2)
      if call('LINDEX', key, middle) + 0 < time then
        low = middle + 1
      else
        high = middle
      end
    end
    return low
  end
  local first, after = index(at), index(at + 1)
  count = math.min(cost, after - first)
  if stored - after < first then
    count = -count
  end
end
if count ~= 0 then
  call('LREM', key, format('%.0f', count), text(at))
end
--- newest (block)
if newest and sub(newest, 1, 1) == '-' then
  ends, newest = sub(newest, 2) + 0, call('LINDEX', key, '-2')
end
--- counted (block)
if ends then
  live = live - 1
end
--- leaver (block)
retry = call('LINDEX', key, cost - room - (ends and 2 or 1) - live) + window - clock
--- mark
local written = redis.pcall('RPUSH', key, '-' .. text(ends))
--- drop
call('LTRIM', key, '0', '-2')
--- whole
if live > 0 then
  reset = newest + window - clock
end
