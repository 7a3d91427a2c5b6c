-- Sliding log in a ZSET: the exact window (t-W, t].
--
-- KEY    one member an event. Its score is the event's time in microseconds.
--        The members of a charge are the numbers up to the time of the charge,
--        raised where needed to be above every earlier member, so that events
--        of one microsecond stay apart and Redis stores them as integers. The
--        newest member is never below its event's time. A block: "-" and its end
--        in 16 digits, of an infinite score, so that it is the newest member.
-- PARAM  length of a time slice in microseconds: an event's time falls to the
--        start of its slice, or to the event before it in that. Where no other is in
--        the window it keeps its own: so no event has a time from before the key was
--        last removed, and a charge of before finds nothing to give back. 0 keeps times
--        exact.
-- CALLS  look: ZREVRANGE for the newest member; if it has not left, ZCOUNT for
--        how many events are in the window; ZREVRANGE for a refusal, and for a charge
--        that leaves nothing; ZSCORE where
--        the newest event's own time is wanted, and that it is not above its
--        member does not tell enough: in slices, if the clock has not passed the
--        member, and if nothing is charged.
--        charge: ZADD; UNLINK before it if all events have left, which frees the
--        set in a thread of its own. PEXPIRE if the newest member is not of the same
--        stretch of slack, see prelude.lua. ZCARD, and ZREMRANGEBYRANK if events have
--        left, when half of max is used, or the newest member is of another stretch of a
--        window; and about every 17th time, or more often at a higher cost, if that is of
--        another stretch of slack, or more than 64 events are in the window then.
--
-- A charge removes at most 128 events more than it adds. Those that stay have
-- left all the same: nothing counts them. In 17 charges a set gains fewer than that, so it
-- shrinks again after a peak. While no more than 64 are in the window a stretch of one
-- has no more either: with those that have left they are at most 128.
--- shared
--- insert texts
--- look
--- reads call charging clock cost first first_text key max param retry text window
--- sets at first first_text live member newest number reset retry room
room, at = max, clock
first_text = first_text or text(first)
local first, first_text, live, number, newest = first, first_text, 0, nil, nil
local member = call('ZREVRANGE', key, '0', '0')[1]
--- insert newest
if member then
  number = member + 0
  if number >= clock or param > 0 or not charging then
    newest = call('ZSCORE', key, member) + 0
    if newest > clock + window then
      number, newest = 0, 0 -- from before the clock stepped back, see prelude.lua
      --- insert forget
    elseif newest > clock then
      at = newest
      first = at - window + 1
      first_text = text(first)
    end
  end
  if number >= first then
    live = call('ZCOUNT', key, first_text, '+inf')
    --- insert counted
  end
  room = max - live
  if cost > room then
    local leaver = live + room - cost
    --- insert leaver
    retry = call('ZREVRANGE', key, leaver, leaver, 'WITHSCORES')[2] + window - clock
  end
  if (retry or not charging) and live > 0 then
    newest = newest or call('ZSCORE', key, member) + 0
    reset = newest + window - clock
  end
end
--- charge
--- reads at call clock clock_text cost format key lifetime live max member newest
--- reads number param room slack sub text window
--- sets at event last name opens reset retry
local event, last, name = clock_text, clock, clock_text
if cost > 1 or number and number >= clock then
  last = math.max(at, (live > 0 and number or 0) + cost)
  name = text(last)
end
if param > 0 and live > 0 then
  at = math.max(at - at % param, newest)
end
if at ~= clock then
  event = text(at)
end
if cost == room then
  retry = at
  if live > 0 then
    retry = call('ZREVRANGE', key, live - 1, live - 1, 'WITHSCORES')[2]
  end
  retry = retry + window - clock
end
-- The first charge of a stretch of slack sets the expiry for all of it.
local opens = live == 0 or number < last - last % slack
if member and (live == 0 or number < last - last % window or (live + cost) * 2 > max
  or (opens or live + cost > 64) and (clock + live) % 17 < cost) then
  -- First, so that a key of 128 events stays in Redis's compact encoding;
  -- and only if there is something to remove, so that otherwise ZADD is the
  -- first write and a Redis out of memory refuses it with nothing changed.
  if live == 0 then
    call('UNLINK', key)
  else
    local left = call('ZCARD', key) - live
    if left > cost + 128 then
      left = cost + 128
    end
    if left > 0 then
      call('ZREMRANGEBYRANK', key, '0', left == 1 and '0' or left - 1)
    end
  end
end
if cost == 1 then
  call('ZADD', key, event, name)
else
  -- unpack is safe up to 7,999 values. The names of a second differ in their last
  -- digits only.
  local names
  for i = last - cost, last - 1, 2000 do
    local events, n = {}, 0
    for j = i + 1, math.min(i + 2000, last) do
      local digits = j % 1000000
      if not names or digits == 0 then
        names = sub(text(j), 1, 10) .. '%06d'
      end
      events[n + 1], events[n + 2] = event, format(names, digits)
      n = n + 2
    end
    call('ZADD', key, unpack(events))
  end
end
if opens then
  call('PEXPIRE', key, lifetime(last + window + slack))
end
reset = at + window - clock
--- refund
--- reads at call cost key text
--- sets at cost
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
--- newest (block)
--- reads call key member sub
--- sets ends member
if member and sub(member, 1, 1) == '-' then
  ends, member = sub(member, 2) + 0, call('ZREVRANGE', key, '1', '1')[1]
end
--- counted (block)
--- reads ends live
--- sets live
if ends then
  live = live - 1
end
--- leaver (block)
--- reads ends leaver
--- sets leaver
if ends then
  leaver = leaver + 1
end
--- mark
--- reads ends key text
--- sets written
local written = redis.pcall('ZADD', key, '+inf', '-' .. text(ends))
--- drop
--- reads call ends key text
call('ZREM', key, '-' .. text(ends))
--- whole
--- reads call clock key live member newest window
--- sets reset
if live > 0 then
  reset = (newest or call('ZSCORE', key, member)) + window - clock
end
