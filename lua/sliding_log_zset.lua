-- Sliding log in a ZSET: the exact window (t-W, t].
--
-- KEY    one member an event. Its score is the event's time in microseconds.
--        The members of a charge are the numbers up to the time of the charge,
--        raised where needed to be above every earlier member, so that events
--        of one microsecond stay apart and Redis stores them as integers. The
--        newest member is never below its event's time.
-- PARAM  length of a time slice in microseconds: an event's time falls to the
--        start of its slice. 0 keeps times exact.
-- CALLS  look: ZREVRANGE for the newest member; if it has not left, ZCOUNT for
--        how many events are in the window; ZREVRANGE for a denial; ZSCORE where
--        the newest event's own time is wanted, and that it is not above its
--        member does not tell enough: in slices, if the clock has not passed the
--        member, and if nothing is charged.
--        charge: ZADD; DEL before it if all events have left. ZCARD, and
--        ZREMRANGEBYSCORE if events have left, when half of max is used or the
--        newest member is not of the same stretch of slack, see prelude.lua, and
--        in that case PEXPIRE. So the set holds at most half of max more events
--        than the window.
--- look
room, at = max, clock
local first, first_text, live, number, newest = first, first_text, 0, nil, nil
local member = call('ZREVRANGE', key, '0', '0')[1]
if member then
  number = member + 0
  if number >= clock or param > 0 or not charging then
    newest = call('ZSCORE', key, member) + 0
    if newest > clock then
      at = newest
      first = at - window + 1
      first_text = text(first)
    end
  end
  if number >= first then
    live = call('ZCOUNT', key, first_text, '+inf')
  end
  room = max - live
  if cost > room then
    local leaver = live + room - cost
    retry = call('ZREVRANGE', key, leaver, leaver, 'WITHSCORES')[2] + window - clock
  end
  if (retry or not charging) and live > 0 then
    newest = newest or call('ZSCORE', key, member) + 0
    reset = newest + window - clock
  end
end
--- charge
local event, last, name = clock_text, clock, clock_text
if cost > 1 or number and number >= clock then
  last = math.max(at, (live > 0 and number or 0) + cost)
  name = text(last)
end
if param > 0 then
  at = math.max(at - at % param, newest or 0)
end
if at ~= clock then
  event = text(at)
end
-- The first charge of a stretch of slack sets the expiry for all of it.
local opens = live == 0 or number < last - last % slack
if member and (opens or (live + cost) * 2 > max) then
  -- First, so that a key of 128 events stays in Redis's compact encoding;
  -- and only if there is something to remove, so that otherwise ZADD is the
  -- first write and a Redis out of memory refuses it with nothing changed.
  if live == 0 then
    call('DEL', key)
  elseif call('ZCARD', key) > live then
    call('ZREMRANGEBYSCORE', key, '-inf', '(' .. first_text)
  end
end
if cost == 1 then
  call('ZADD', key, event, name)
else
  -- unpack is safe up to 7,999 values.
  for i = last - cost, last - 1, 2000 do
    local events = {}
    for j = i + 1, math.min(i + 2000, last) do
      events[#events + 1] = event
      events[#events + 1] = format('%.0f', j)
    end
    call('ZADD', key, unpack(events))
  end
end
if opens then
  call('PEXPIRE', key, lifetime(last + window + slack))
end
reset = at + window - clock
--- refund
-- Events of one time are alike, but the newest member is the last to go.
at = text(at)
while cost > 0 do
  local events = call('ZRANGEBYSCORE', key, at, at, 'LIMIT', '0', math.min(cost, 4000))
  if #events == 0 then
    break
  end
  call('ZREM', key, unpack(events))
  cost = cost - #events
end
