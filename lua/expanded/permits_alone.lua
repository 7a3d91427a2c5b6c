-- Decides one call that has one limit and stands for itself, as most calls are when few
-- come at a time. It does the same as take.lua, without what only more calls need.
--
-- KEYS   that of the limit
-- ARGV   "take", with "check " before it as in take.lua; window max param more mode, which
--        are those of take.lua; and the cost
-- REPLY  that of take.lua
local replies = {}
-- Redis's own clock, in microseconds. It may step back, and a promoted replica
-- may be behind: no algorithm lets time run before the newest event of a key.
local time = redis.call('TIME')
local clock = time[1] * 1000000 + time[2]
replies[1] = clock

-- If it is asked to, a script looks first whether the server can count. The library struct
-- keeps a number in a C long: on a server of 32 bits that cuts the times that limits keep,
-- and nothing would be limited.
if #ARGV[1] > 6 then
  ARGV[1] = string.sub(ARGV[1], 7)
  local library = rawget(_G, 'struct')
  if library and library.unpack('>I7', library.pack('>I7', clock)) ~= clock then
    return redis.error_reply('UNFIT the server cannot keep what limits count: its library'
      .. ' struct cuts numbers to 32 bits; use a build of 64 bits')
  end
end

local i = 1 -- the terms begin behind it

local function decide()
  -- Names that every algorithm shares.
  --
  -- Redis makes every function of a script anew for each execution, and each
  -- variable that one shares with another; a call of a function takes as long as
  -- several lines of it. So an algorithm is no function but pieces of text, which
  -- package lua puts where they are wanted: into a loop over keys, or, for calls
  -- that no loop decides, into functions.
  --
  --   gather   reads what look wants of all the keys of a run, if one command can
  --   look     reads key, to learn whether cost fits, and sets
  --     room    how much could be charged now, below 0 if max was lowered
  --     retry   if cost does not fit: microseconds until it will
  --     reset   microseconds until the limit is whole again, unless it is. It may
  --             be left out when charging is true and cost fits
  --     at      the time now, never before the newest event
  --   charge   writes what look found to fit, and sets
  --     reset   as above
  --     retry   microseconds until one more fits, if it leaves nothing: only of logs
  --             and counters, since reset tells it of others
  --     at      the time that the charge counts as
  --     delay   microseconds that the caller must wait for its turn, if any
  --   refund   takes back up to cost of the charge that was made as of at. Charged is
  --            what that was, and made_mark its mark. It may use the other pieces
  --   share    declares mark, if charges have one: what refund must know of a charge
  --            besides its time. An algorithm that has it says so to reply, too
  --   renew    keeps what was charged as of at from lapsing for a window more, and
  --            sets held to 1, unless it was reset since; only of an algorithm
  --            whose charges lapse
  --
  -- Time stands still for a key while Redis's clock is behind its newest event. If that is
  -- more than a window ahead, the clock has stepped back by more than that, and look finds
  -- nothing, as if Redis had lost the key: it would deny calls for as long as the step was.
  -- A charge then writes the key anew.
  --
  -- A charge may use what its look keeps in locals. A piece neither returns
  -- nor leaves a loop that is not its own. "+ 0" makes a number of a text, and
  -- fails if it is none: tonumber would take twice as long. So what is no number
  -- where one should be shows that a key is somebody else's. Likewise x - x % 1
  -- is the floor of x, and x + -x % 1 its ceiling, for a tenth of a call.
  local call, format, sub, ceil = redis.call, string.format, string.sub, math.ceil
  local KEYS, ARGV, clock, replies = KEYS, ARGV, clock, replies

  -- The terms of the limit that is being decided, see take.lua, and their number;
  -- and all terms so far by their numbers. Times are in microseconds.
  local used, known, algorithm, window, max, param, more, shadow

  -- For how much longer than need be a key may live: a quarter of the window, but
  -- at least 0.1 seconds or all of it, and at most 0.8 seconds. Setting an expiry
  -- takes as long as writing an event. So an algorithm that can tell from what it
  -- has read that a charge shortly before set one sets it for slack longer, and
  -- leaves it until that is used up.
  local slack

  -- The first microsecond inside the window, if time has not stepped back; and as
  -- text, if it is wanted.
  local first, first_text

  -- found holds the values of the keys of a run, which follow the place before. ready is the
  -- value of the key that is being decided, until it is used.
  local found, before, ready

  -- How many milliseconds a key lives on that means something until a time. It is
  -- counted from now, and is a little more than that: Redis would drop a key at
  -- once that is to expire in its past, which a short window is when the script
  -- has run for long, and calls later in the script would find it empty.
  local function lifetime(at)
    local life = ceil((at - clock) / 1000) + 100
    return format(life < 2 ^ 31 and '%d' or '%.0f', life)
  end
  -- A time is written as text, 16 digits. (Redis itself would write a number that is
  -- an argument of redis.call with 17 digits, which is exact, and not scientific for
  -- an integer below 2^53, but slow. And texts are not compared, since that takes
  -- long where Redis has a locale.)
  local clock_text = time[1] .. sub('00000' .. time[2], -6)
  local function text(at)
    return format('%010d%06d', at / 1000000, at % 1000000)
  end
  local n, key, cost, charging, times = 1, KEYS[1], ARGV[7] + 0, true, 1
  -- Reads the terms that begin at ARGV[i].
  algorithm, window, max, param = ARGV[i], ARGV[i + 1] + 0, ARGV[i + 2] + 0, ARGV[i + 3] + 0
  more, shadow = ARGV[i + 4] + 0, ARGV[i + 5] == '1'
  slack = ceil(window / 4)
  if slack < 100000 then
    slack = window < 100000 and window or 100000
  elseif slack > 800000 then
    slack = 800000
  end
  first = clock - window + 1
  local allowed, room, retry, reset, at, delay = 0, nil, nil, nil, nil, nil
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
  if retry then
    -- Somebody may have removed the expiry of a key, and it would stay for ever; or
    -- the key was charged by a shorter window, and would go too early.
    if reset and call('PTTL', key) < reset / 1000 then
      call('PEXPIRE', key, lifetime(clock + reset + slack))
    end
    at = 0
  else
    allowed = 1
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
    room = room - cost
  end
  if room < 0 then
    room = 0
  end
  if at == clock and not retry and not delay then
    replies[n + 1], replies[n + 2] = room, reset
    n = n + 2
  else
    replies[n + 1], replies[n + 2], replies[n + 3], replies[n + 4] = -2, allowed, room, retry or 0
    replies[n + 5], replies[n + 6], replies[n + 7] = reset or 0, at or 0, delay or 0
    n = n + 7
  end
end

local ok, err = pcall(decide)
if not ok then
  -- A call's failure, a key of a foreign type say, is not another's: the next
  -- is decided as if it had not been there.
  -- From Redis 7.0 on a raised error may be a table, and before it is a text. If
  -- it is about a command that was not called, that text then begins with
  -- "@user_script: 7: -" before the word in capitals, or in place of "ERR" with
  -- "@user_script: 7: ". What is no error of Redis is one of Lua about a value that
  -- no limit can have written.
  if type(err) == 'table' then
    err = err.err
  end
  err = string.gsub(err, '^[@=].-: %-?%d+: %-', '')
  err = string.gsub(err, '^[@=].-: %-?%d+: ', 'ERR ')
  err = string.match(err, '(%u%u+ .*)$')
    or 'WRONGTYPE Operation against a key holding something that no rate limit wrote: ' .. err
  -- But a demoted master has written nothing for any call, and the client
  -- must learn that it talks to the wrong server.
  if string.match(err, '^READONLY') then
    return redis.error_reply(err)
  end
  local failed, n = -1, #replies
  local bytes = { string.byte(err, 1, math.min(#err, 200)) }
  replies[n + 1], replies[n + 2] = failed, #bytes
  for i = 1, #bytes do
    replies[n + 2 + i] = bytes[i]
  end
end
return replies
