-- Decides calls: each is charged to all its limits, or to none.
--
-- KEYS   one for every limit, in the order of the calls; all in one slot on a
--        cluster. The keys of one call differ.
-- ARGV   the operation, "take", "peek", "settle", "renew" or "hold", with "check " before it
--        if the server may be one that cannot count; the number of terms, and for
--        each the six values
--          algorithm window max param more mode
--        (times in microseconds; what param and more mean is the algorithm's;
--        mode is 1 for a limit that is counted but denies nobody, and above
--        that for how long a denied caller stays denied, see block.lua); then
--        for every run of limits, in the order of KEYS,
--          terms  which of them hold, from 1 on; below 0 if another limit of
--                 the same call follows
--          cost   to settle, what to charge however little room there is; below
--                 0, what to give back of a charge
--          times  how many calls in a row this stands for, each of that cost:
--                 only for a call with one limit. To settle, the time that the
--                 charge counts as, if it is given back; and to renew. To hold, for
--                 how long from now on a block denies everybody, unless one does for
--                 longer; 0 ends any
--          keys   how many keys in a row, each of them a call of its own, this
--                 holds for: 1 if it is one of several limits of a call, and
--                 to peek; below 0 if some of these keys may be the same
--        and to settle, before these four, what was charged, and the charge's mark
-- REPLY  integers, since a reply takes Redis and the client as long as it is
--        long. The time first, and then, to settle, for every limit that failed the
--        number of its key, from 1 on, and the error as below; or else for every limit
--          left     how much is left, after the charges; to renew, 1, or 0 for
--                   what was reset since; to hold, 0
--          reset    microseconds until the limit is whole again
--        if all the calls were charged as of that time, and then its mark if that is
--        above 0: reset is then sent as -reset. Or else -2 and
--          allowed  how many of the calls had room. They were charged if
--                   every limit of the call that is not a shadow had room
--          left
--          retry    microseconds until there is room; 0 if there is, or, where
--                   all had room and left is 0, until one more has, if known
--          reset
--          at       the time that the charge counts as: its own, that of its
--                   slice, or the last of its bucket; 0 if there was none
--          delay    microseconds that the caller must wait for its turn
--        and the mark of the charge, if that is above 0: at is then sent as -at.
--        That begins with -3 if a block denies the caller, from now on at the
--        latest. For a call that failed -1, the length of the error, and its
--        bytes; and -4 and these for a limit in shadow mode that failed alone,
--        beside others.
-- Time is read once, so all calls happen at the same moment, in order.
local replies = {}
local arg = ARGV[2] * 6 - 1 -- the newest run of limits; the next one follows
local place, last = 1, 0 -- the next key, and the last one of that run

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

-- Decides as many calls as it can. If one fails it ends with the error, and
-- decides the calls after that one when it is called again.
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
  -- Numbers in bytes, the highest first: number reads those that a format names, from a
  -- text and a place, and bytes writes them. The format is ">" and, for each, "I" and
  -- how many bytes it has.
  local number, bytes
  local struct = rawget(_G, 'struct')
  if struct then
    number, bytes = struct.unpack, struct.pack
  else
    -- Redis has it; servers that stand for it in tests may not.
    number = function(form, text, place)
      local found = {}
      for size in string.gmatch(form, '%d') do
        local value = 0
        for _ = 1, size + 0 do
          value, place = value * 256 + string.byte(text, place, place), place + 1
        end
        found[#found + 1] = value
      end
      return unpack(found)
    end
    bytes = function(form, ...)
      local text, values, n = '', { ... }, 0
      for size in string.gmatch(form, '%d') do
        n = n + 1
        local part, value = '', values[n]
        for _ = 1, size + 0 do
          part, value = string.char(value % 256) .. part, math.floor(value / 256)
        end
        text = text .. part
      end
      return text
    end
  end
  local n, keys = #replies, 0 -- of the run of limits
  while true do
    if place > last then
      arg = arg + 4
      if arg > #ARGV then
        return
      end
      keys = ARGV[arg + 3] + 0
      last = place + math.abs(keys) - 1
    end
    local which, each, times = ARGV[arg] + 0, ARGV[arg + 1] + 0, ARGV[arg + 2] + 0
    -- Makes the terms hold whose number is which.
    if which ~= used then
      local i = 3 + (which - 1) * 6
      local t = known and known[which]
      if t then
        algorithm, window, max, param, more, shadow, slack, first = unpack(t)
      else
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
        if ARGV[2] ~= '1' then
          known = known or {}
          known[which] = { algorithm, window, max, param, more, shadow, slack, first }
        end
      end
      used, first_text = which, nil
    end
    if algorithm == 'bucket' then
      -- Reads the STRINGs under the keys of a run at once, if each key comes once.
      if keys > 1 then
        found, before = redis.pcall('MGET', unpack(KEYS, place, last)), place - 1
      end
      -- Takes calls with one limit up to that of the last key. Each stands for times
      -- calls in a row, of which as many as there is room for are charged at once.
      for i = place, last do
        place = i + 1
        ready = found and found[i - before]
        local key, cost, charging = KEYS[i], each, true
        local allowed, room, retry, reset, at, delay = 0, nil, nil, nil, nil, nil
        local charged, turn -- at and delay of those calls that fit, if not all do
        local mark = 0
        repeat
          local again = false
          local state
          -- Reads the STRING under key. A value in ready is used once: the key may change then.
          state, ready = ready, nil
          if not state then
            state = call('GET', key)
          end
          local expires, since, stored, begun, halvings, rest
          if state then
            local kind, ended
            if #state == 44 then
              kind, ended, expires, since, stored, begun, halvings, rest = number('>I1I7I7I7I8I7I2I5', state, 1)
            elseif #state == 30 then
              kind, ended, expires, since, stored = number('>I1I7I7I7I8', state, 1)
              begun, halvings, rest = since, 0, 2 ^ 40 - 1
            end
            if kind ~= 3 then
              error('a text of another kind')
            end
          end
          at = clock
          local level, held = 0, stored
          mark = 0
          if stored and since > clock + window then
            expires, stored = nil, nil -- from before the clock stepped back, see prelude.lua
          end
          if stored then
            -- A bucket is empty after 2^52 microseconds, 142 years, at the latest: one
            -- that max was lowered for by far may not take longer, so that all times are
            -- exact.
            if stored * window > 2 ^ 52 * max * 1000000 then
              stored = math.floor(2 ^ 52 * max * 1000000 / window)
            end
            if since > clock then
              at = since
            end
            local drained = (at - since) * max * 1000000 / window
            level = stored - (drained - drained % 1)
            if level <= 0 then
              level = 0
            else
              if level < held then
                rest = rest * (level / held)
                while rest < 2 ^ 39 do
                  rest, halvings = rest * 2, halvings + 1
                end
                rest = rest - rest % 1 - 1
                if halvings >= 8192 then -- of what was charged before next to nothing is left
                  begun, halvings, rest = at, 0, 2 ^ 40 - 1
                end
              end
              mark = (halvings + 1) * 2 ^ 40 - 1 - rest
            end
          else
            since, stored = clock, 0
          end
          local most = (param - cost) * 1000000
          room = (param * 1000000 - level) / 1000000
          room = room - room % 1
          local empty
          if level > most or more >= 0 or not charging then
            empty = since + ceil(stored * window / (max * 1000000))
            if level > 0 then
              reset = empty - clock
            end
            if level > most or more >= 0 and empty - at > more then
              local turn = at + 1
              if more >= 0 and empty - more > turn then
                turn = empty - more
              end
              local function fits(at)
                return stored - math.floor((at - since) * max * 1000000 / window) <= math.max(0, most)
              end
              local free = math.max(turn, since + ceil((stored - most) * window / (max * 1000000)))
              -- Rounding may have missed the first microsecond that fits by one.
              while not fits(free) do
                free = free + 1
              end
              while free > turn and fits(free - 1) do
                free = free - 1
              end
              retry = free - clock
            end
          end
          if not charging then
            retry, at, delay = retry or 1, charged, turn
          elseif retry then
            -- Somebody may have removed the expiry of a key, and it would stay for ever; or
            -- the key was charged by a shorter window, and would go too early.
            if reset and call('PTTL', key) < reset / 1000 then
              call('PEXPIRE', key, lifetime(clock + reset + slack))
            end
            at = 0
          else
            allowed = 1
            if times > 1 then
              -- At least one fits, even if the rounding of a large level hides it.
              allowed = math.max(1, math.min(times, math.floor(room / cost)))
              cost = cost * allowed
            end
            local fresh = level == 0 -- the bucket was empty
            level = level + cost * 1000000
            if level > param * 1000000 then -- a debt; what would take longer to drain is never owed
              level = math.min(level, 2 ^ 62, math.floor(2 ^ 52 * max * 1000000 / window))
            end
            local drain = level * window / (max * 1000000)
            local stop = at + drain + -drain % 1
            local spare = expires and expires - stop
            if spare and spare >= 0 and spare <= slack then
              if fresh then
                begun, halvings, rest = at, 0, 2 ^ 40 - 1
              end
              call('SETRANGE', key, '15', bytes('>I7I8I7I2I5', at, level, begun, halvings, rest))
            else
              expires = stop + slack
              call('SET', key, '\3\0\0\0\0\0\0\0' .. bytes('>I7I7I8', expires, at, level)
                .. (fresh and '' or bytes('>I7I2I5', begun, halvings, rest)), 'PX', lifetime(expires))
            end
            reset = stop - clock
            if more >= 0 then
              delay = math.max(empty, at) - clock
              mark = at
              at = stop
            end
            room = room - cost
            if allowed < times then
              charged, turn = at, delay
              again, cost, charging = true, each, false
            end
          end
        until not again
        if room < 0 then
          room = 0
        end
        if at == clock and not retry and not delay then
          if mark == 0 then
            replies[n + 1], replies[n + 2] = room, reset
            n = n + 2
          else
            replies[n + 1], replies[n + 2], replies[n + 3] = room, -reset, mark
            n = n + 3
          end
        else
          replies[n + 1], replies[n + 2], replies[n + 3], replies[n + 4] = -2, allowed, room, retry or 0
          replies[n + 5], replies[n + 6], replies[n + 7] = reset or 0, at or 0, delay or 0
          n = n + 7
          if mark > 0 and at and at > 0 then
            replies[n - 1], replies[n + 1] = -at, mark
            n = n + 1
          end
        end
      end
    end
  end
end

repeat
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
until ok
return replies
