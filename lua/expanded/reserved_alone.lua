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
if ARGV[i + 3] ~= '0' and (clock < ARGV[i + 3] - ARGV[i + 1] or clock >= ARGV[i + (ARGV[i + 7] == '1' and 3 or 4)] + 0) then
  return redis.error_reply('PERIOD ' .. string.format('%.0f', clock) .. ' is the time of the server')
end

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
  -- See TERMS.
  local reserve, debt

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
  local function member(number, cost)
    return text(number) .. format(' %.0f', cost)
  end
  local n, key, cost, charging, times = 1, KEYS[1], ARGV[9] + 0, true, 1
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
  reserve, debt = ARGV[i + 6] + 0, ARGV[i + 7] + 0
  local allowed, room, retry, reset, at, delay = 0, nil, nil, nil, nil, nil
  local found, head, heads = call('ZRANGEBYSCORE', key, '-inf', clock_text, 'WITHSCORES'), {}, 0
  while found[2 * heads + 2] and found[2 * heads + 2] + 0 <= 0 do
    head[found[2 * heads + 1]] = -found[2 * heads + 2]
    heads = heads + 1
  end
  local start, stop, used, open = head.start, head.stop, head.used, head.open
  local highest, forgot, owed, due = head.last, head.reset, head.owed or 0, head.due or 0
  if found[1] and not (start and used and highest) or not found[1] and call('ZCARD', key) > 0 then
    error('members of another kind')
  end
  local back, carried, pays, gone = 0, 0, 0, {}
  if not start or start > clock + window then
    -- There is nothing, or it is from before the clock stepped back, see prelude.lua.
    found, start, stop, used, open, highest, forgot, owed, due = {}, 0, 0, 0, 0, 0, 0, 0, 0
  elseif start > 0 and param == 0 then
    stop = start + window
  end
  for j = 2 * heads + 1, #found, 2 do
    if found[j + 1] + 0 <= stop then
      gone[#gone + 1], back = found[j], back + sub(found[j], 18)
    end
  end
  used, open, owed = used - back, open - back, math.max(0, owed - back)
  local fresh = clock >= stop
  if fresh then
    local begin = clock
    if clock < due then
      carried, pays = owed, due
      if carried > 0 and param == 0 and clock < stop + window then
        begin = stop
      end
    end
    start, stop = begin, begin + window
    if param > 0 then
      stop = clock < param and param or more
    end
    used, open, gone, owed, due = carried, 0, {}, 0, 0
  end
  room, at = max - used, clock
  if start > clock then
    at = start
  end
  if not fresh then
    reset = stop - clock
  elseif carried > 0 then
    reset = pays - clock
  end
  if cost > room then
    retry = reset
    if open > 0 and cost <= room + open then
      local lapses = call('ZREVRANGE', key, '0', '0', 'WITHSCORES')[2]
      retry = math.min(reset, lapses - clock)
    elseif not fresh and owed > open and cost > max - owed + open then
      retry = due - clock
    end
  end
  if open >= 10000 then
    local reservations = call('ZCARD', key) - heads - #gone
    if reservations >= 10000 then
      local soonest = call('ZRANGE', key, heads + #gone, heads + #gone, 'WITHSCORES')[2] - clock
      retry = math.max(retry or 0, math.min(reset, soonest))
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
    local name
    highest, used = highest < clock and clock or highest + 1, used + cost
    if reserve > 0 then
      open, name = open + cost, member(highest, cost)
    end
    if used > 9007199254740991 then
      used = 9007199254740991 -- the largest max, see fixed_window.lua
    end
    if fresh and head.last or gone[1] then
      local refused = redis.pcall('ZADD', key, 'XX', '0', '')
      if refused ~= 0 and not string.find(refused.err, 'OOM ') then
        error(refused.err, 0)
      end
      if fresh then
        call('UNLINK', key)
      end
    end
    for j = 1, #gone, 4000 do
      call('ZREM', key, unpack(gone, j, math.min(j + 3999, #gone)))
    end
    if fresh then
      call('ZADD', key, format('%.0f', -start), 'start', format('%.0f', -stop), 'stop', format('%.0f', -forgot), 'reset')
    end
    local values = { format('%.0f', -used), 'used', format('%.0f', -open), 'open', format('%.0f', -highest), 'last' }
    if name then
      values[7], values[8] = text(clock + reserve), name
    end
    if due > 0 then
      local n = #values
      values[n + 1], values[n + 2], values[n + 3], values[n + 4] = format('%.0f', -owed), 'owed', format('%.0f', -due), 'due'
    end
    call('ZADD', key, unpack(values))
    if not fresh and head.stop ~= stop then
      call('ZADD', key, format('%.0f', -stop), 'stop')
    end
    -- Somebody may have removed the expiry.
    local lives = owed > 0 and due or stop
    if fresh or lives > stop or head.stop ~= stop or math.floor(head.last / 1000000) ~= math.floor(clock / 1000000) then
      call('PEXPIRE', key, lifetime(lives))
    end
    at, reset = highest, stop - clock
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
