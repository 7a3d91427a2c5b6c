-- Concurrency: permits that calls hold while they run, and give back.
--
-- KEY    a ZSET with one member a permit: its number, 16 digits, and as the score
--        the time in microseconds at which it lapses unless it is renewed. Numbers
--        count the time: a charge gives its permits the numbers up to the time of
--        the charge, raised where needed to be above every earlier one, so that no
--        two permits of a key ever have the same. Three more members come first:
--          last   its score is the highest number so far, below 0
--          reset  its score is the highest number at the last reset, below 0; -1:
--                 there was none
--          mean   its score is a running mean of how long permits were held, in
--                 microseconds; 0: none has come back yet
-- AT     the number of the charge's last permit.
-- CALLS  look: ZRANGE for these and the permit that lapses first; ZREVRANGE
--        for the one that lapses last, and ZCOUNT, if there are permits; ZREVRANGE
--        for a refusal. After a step of the clock ZCOUNT and ZREVRANGE once more, and
--        a charge makes ZREMRANGEBYRANK.
--        charge: ZADD; ZCARD ZREMRANGEBYRANK before it if permits have lapsed; and
--        PEXPIRE if the permit that lapses last is not of the same stretch of
--        slack, see prelude.lua.
--        refund, which gives permits back: ZSCORE ZREM ZADD.
--        renew: ZRANGE, ZREVRANGE, ZADD, and PEXPIRE as for a charge; a reset,
--        which is a renewal at no cost: ZRANGE UNLINK ZADD PEXPIRE.
--
-- A permit has lapsed at the time that is its score, and counts no more. Nor does one
-- whose score is more than two windows ahead, until it is renewed, if the last number
-- shows that the clock has stepped back since and that the window was not just longer
-- before: nobody knows whether its process lives. A charge
-- removes at most 128 lapsed permits more than it adds. A renewal writes permits
-- that are gone again: Redis has lost them, or they have lapsed while their process
-- was cut off. It does not bring back those of before a reset.
--
-- RetryAfter cannot be known, since it depends on how long calls take: it is what
-- the mean makes likely, but at most the time until enough permits lapse.
--- shared
--- insert texts
--- look
--- reads call charging clock clock_text cost key max retry text window
--- sets at far found live mean newest number oldest reset retry room
room, at = max, clock
local number, mean, oldest, newest, live, far = nil, 0, nil, 0, 0, 0
local found = call('ZRANGE', key, '0', '3', 'WITHSCORES')
if found[1] then
  if found[1] ~= 'last' or found[5] ~= 'mean' then
    error('members of another kind')
  end
  number, mean, oldest = -found[2], found[6] + 0, found[8]
  if oldest then
    oldest = oldest + 0
    newest = call('ZREVRANGE', key, '0', '0', 'WITHSCORES')[2] + 0
    if newest > clock then
      live = call('ZCOUNT', key, '(' .. clock_text, '+inf')
    end
    if newest > clock + 2 * window and number > clock + window then
      -- From before the clock stepped back, see prelude.lua: until they are renewed.
      far = call('ZCOUNT', key, '(' .. text(clock + 2 * window), '+inf')
      live, newest = live - far, clock
      if live > 0 then
        newest = call('ZREVRANGE', key, far, far, 'WITHSCORES')[2] + 0
      end
    end
  end
  room = max - live
  if cost > room then
    local leaver = max - cost + far
    retry = call('ZREVRANGE', key, leaver, leaver, 'WITHSCORES')[2] - clock
    if mean > 0 then
      retry = math.min(retry, math.max(1000, math.floor(mean * (cost - room) / live)))
    end
  end
  if live > 0 and (retry or not charging) then
    reset = newest - clock
  end
end
--- charge
--- reads call clock clock_text cost far key lifetime live newest number oldest slack
--- reads text window
--- sets at last name reset score stop
local last, stop = clock, clock + window
if number and number + cost > clock then
  last = number + cost
end
if far > 0 then
  call('ZREMRANGEBYRANK', key, -far, '-1')
end
if oldest and oldest <= clock then
  local lapsed = math.min(call('ZCARD', key) - 3 - live, cost + 128)
  call('ZREMRANGEBYRANK', key, '3', lapsed + 2)
end
local score, name = text(stop), last == clock and clock_text or text(last)
if cost == 1 and number then
  call('ZADD', key, '-' .. name, 'last', score, name)
else
  local members = { '-' .. name, 'last' }
  if not number then
    members[3], members[4], members[5], members[6] = '-1', 'reset', '0', 'mean'
  end
  local n = #members
  for i = last - cost + 1, last do
    members[n + 1], members[n + 2] = score, text(i)
    n = n + 2
    if n >= 4000 then -- unpack is safe up to 7,999 values
      call('ZADD', key, unpack(members, 1, n))
      n = 0
    end
  end
  if n > 0 then
    call('ZADD', key, unpack(members, 1, n))
  end
end
if newest < stop - stop % slack then
  call('PEXPIRE', key, lifetime(stop + slack))
end
at, reset = last, math.max(stop, newest) - clock
--- refund
--- reads at call clock cost format key text
--- sets mean
local mean = call('ZSCORE', key, 'mean')
if mean then
  local removed = 0
  for i = at - cost + 1, at, 4000 do
    local names = {}
    for j = i, math.min(i + 3999, at) do
      names[#names + 1] = text(j)
    end
    removed = removed + call('ZREM', key, unpack(names))
  end
  if removed > 0 then
    local held = math.max(1, math.min(clock - at, 2 ^ 44))
    mean = mean + 0
    mean = mean == 0 and held or mean + math.floor((held - mean) / 8)
    call('ZADD', key, format('%.0f', mean), 'mean')
  end
end
--- renew
--- reads at call clock cost key lifetime slack text window
--- sets found held name stop
local found = call('ZRANGE', key, '0', '1', 'WITHSCORES')
if found[1] and found[1] ~= 'last' then
  error('members of another kind')
end
local stop, name = clock + window, text(at)
if cost == 0 then
  local last = '-' .. text(math.max(clock, found[1] and -found[2] or 0))
  call('UNLINK', key)
  call('ZADD', key, last, 'last', last, 'reset', '0', 'mean')
  call('PEXPIRE', key, lifetime(stop + slack))
elseif not found[1] or at > -found[4] then
  held = 1
  local newest, members = 0, {}
  if not found[1] then
    members = { '-' .. name, 'last', '-1', 'reset', '0', 'mean' }
  else
    newest = call('ZREVRANGE', key, '0', '0', 'WITHSCORES')[2] + 0
    if at > -found[2] then
      members = { '-' .. name, 'last' }
    end
  end
  local score = text(stop)
  for i = at - cost + 1, at do
    local n = #members
    members[n + 1], members[n + 2] = score, text(i)
    if n >= 4000 then
      call('ZADD', key, unpack(members))
      members = {}
    end
  end
  if members[1] then
    call('ZADD', key, unpack(members))
  end
  if newest < stop - stop % slack then
    call('PEXPIRE', key, lifetime(stop + slack))
  end
end
