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
--        and one for each process that waits, at most 64: since when, 16 digits, its
--        number, 15 digits, and the cost of its first call, and as the score a 32nd of
--        the time at which it last asked, which is between a mean and a time.
-- PARAM  the number of the process, if its call may wait; minus the number, if more of its calls
--        wait behind that one; or 0.
-- MORE   how many permits that process has. If that number less max, which is below 0, is given
--        instead, the process passes the others in line where there are fewer permits than processes.
-- AT     the number of the charge's last permit. To give back at 0 says that no call of the
--        process waits any more.
-- CALLS  look: ZRANGE for these and the permit that lapses first; ZREVRANGE
--        for the one that lapses last, and ZCOUNT, if there are permits; ZREVRANGE
--        for a refusal. While a process waits ZRANGEBYSCORE and ZRANGE. After a step of
--        the clock ZCOUNT and ZREVRANGE once more, and a charge makes ZREMRANGEBYRANK.
--        charge: ZADD; ZCARD ZREMRANGEBYRANK before it if permits have lapsed; while
--        a process waits ZADD and ZREM; and PEXPIRE if the permit that lapses last is not of
--        the same stretch of slack, see prelude.lua.
--        refusal of a call that may wait: ZADD, 20 times a second at most for a process,
--        and ZREM of who waits no longer.
--        refund, which gives permits back: ZSCORE ZREM ZADD; or a place, ZRANGEBYSCORE ZREM.
--        renew: ZRANGE, ZREVRANGE, ZADD, and PEXPIRE as for a charge; a reset,
--        which is a renewal at no cost: ZRANGE UNLINK ZADD PEXPIRE.
--
-- A permit lapses at the time that is its score, and no longer counts then. A permit whose score is
-- more than two windows ahead does not count either, until it is renewed, if the last number shows
-- that the clock has stepped back since, and that the window was not just longer before: nobody knows
-- whether its process lives. A charge removes at most 128 lapsed permits more than it adds. A renewal
-- writes permits again that Redis has lost, or that lapsed while their process was cut off, but none
-- from before a reset.
--
-- Processes that wait take turns. The part of a process is max divided by all that wait. A process
-- that has no more than its part takes what there is room for. For more than its part it waits until
-- it has waited longest; a process whose call needs more than a part goes before all others. A process
-- that takes its part keeps its place if more of its calls wait. After its turn it gets a new place if
-- they do. So each process gets at least half of an even share, and no cost waits for ever. A process that
-- has not asked for 0.2 s has stopped or left, and has no place. A call that may not wait is admitted
-- if there is room. A refused call is told when to ask again: soon if the next permit is for its
-- process, and the later the longer permits are held.
--
-- RetryAfter cannot be known, since it depends on how long calls take: it is what the mean makes
-- likely, but at most the time until enough permits lapse.
--- shared
--- insert texts
--- look
--- reads call charging clock clock_text cost key max param retry text window
--- sets asked at before far found gone line live mean mine newest number
--- sets oldest others reset retry room waiting
room, at = max, clock
local number, mean, oldest, newest, live, far = nil, 0, nil, 0, 0, 0
local line, others, waiting, gone, mine, asked, before = 0, 0, nil, nil, nil, 0, 0
local found = call('ZRANGE', key, '0', '3', 'WITHSCORES')
if found[1] then
  if found[1] ~= 'last' or found[5] ~= 'mean' then
    error('members of another kind')
  end
  number, mean, oldest = -found[2], found[6] + 0, found[8]
  if oldest then
    oldest = oldest + 0
    if oldest < clock / 2 then
      waiting = call('ZRANGEBYSCORE', key, '(17592186044416', text(clock / 2), 'WITHSCORES')
      line = #waiting / 2
      oldest = (call('ZRANGE', key, line + 3, line + 3, 'WITHSCORES')[2] or 0) + 0
    end
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
  if waiting and param ~= 0 then
    --- insert line
  end
  if live > 0 and (retry or not charging) then
    reset = newest - clock
  end
end
--- line
--- reads before clock cost line max mean mine more others param retry room
--- reads sub waiting
--- sets ahead asked before gone heavy held mine others part retry room since
-- Finds the process's own place, what those ahead of it ask for, and of that what is more
-- than a part, or 1.
gone = {}
local ahead, heavy = {}, 0
for i = 1, line * 2, 2 do
  local name, last_asked = waiting[i], waiting[i + 1] * 32
  if sub(name, 17, 31) + 0 == math.abs(param) then
    mine, asked = name, last_asked
  elseif math.abs(clock - last_asked) <= 200000 then
    others = others + 1
    ahead[others] = name
  else
    gone[#gone + 1] = name
  end
end
local part, held, since = math.floor(max / (others + 1)), more, mine and sub(mine, 1, 16) + 0
if held < 0 and part > 0 then
  held = held + max
end
for _, name in ipairs(ahead) do
  local began, process = sub(name, 1, 16) + 0, sub(name, 17, 31) + 0
  if not mine or began < since or began == since and process < math.abs(param) then
    local wanted = sub(name, 32) + 0
    before = before + wanted
    if wanted > math.max(1, part) then
      heavy = heavy + wanted
    end
  end
end
room = math.min(room, math.max(room - before, math.min(room - heavy, part - held)))
if cost > room then
  retry = retry or math.max(1000, math.floor(mean * (before + cost) / max))
end
--- stand
--- reads asked call clock clock_text cost format gone key line mine param sub
--- sets place
-- Gives the process a place, keeps the one that it has, or says that it has asked.
local place = (mine and sub(mine, 1, 16) or clock_text) .. format('%015d%d', math.abs(param), cost)
if mine and place ~= mine then
  gone[#gone + 1] = mine
end
if place ~= mine and line - #gone < 64 or place == mine and math.abs(clock - asked) >= 50000 then
  call('ZADD', key, format('%.0f', (clock - clock % 32) / 32), place)
end
--- place
--- reads before call clock cost gone key live max mean more number param
--- sets delay gone
-- A refused call has its process stand in line, and is told when to ask again.
if param ~= 0 then
  gone = gone or {}
  --- insert stand
  if #gone > 0 then
    call('ZREM', key, unpack(gone))
  end
  delay = 100000
  if cost <= max - live or live > more then -- what comes back is not only its own
    local next = math.max(mean, 10000) / max / 2
    delay = before * next + math.max(2000, next / 16, (clock - number) / 16)
    delay = math.floor(math.min(50000, delay))
  end
end
--- begins
--- reads delay
, nil, nil, function()
  --- insert place
  return delay
end
--- charge
--- reads before call clock clock_text cost far gone key lifetime line live max
--- reads mine newest number oldest others param slack text window
--- sets at last line mine name reset score stop
local last, stop = clock, clock + window
if number and number + cost > clock then
  last = number + cost
end
if far > 0 then
  call('ZREMRANGEBYRANK', key, -far, '-1')
end
if oldest and oldest <= clock then
  local lapsed = math.min(call('ZCARD', key) - 3 - line - live, cost + 128)
  call('ZREMRANGEBYRANK', key, line + 3, line + lapsed + 2)
end
if gone then
  if mine and (param > 0 or cost <= max - live - before) then
    call('ZREM', key, mine) -- first: the next place may have the same name
    mine, line = nil, line - 1
  end
  if param < 0 and others > 0 then
    --- insert stand
  end
  if #gone > 0 then
    call('ZREM', key, unpack(gone))
  end
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
--- reads at call clock cost format key param sub text
--- sets mean
if at == 0 then
  for _, name in ipairs(call('ZRANGEBYSCORE', key, '(17592186044416', text(clock / 2))) do
    if sub(name, 17, 31) + 0 == param then
      call('ZREM', key, name)
    end
  end
end
local mean = at > 0 and call('ZSCORE', key, 'mean')
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
