-- What take.lua is made of besides the algorithms.
--- time
--- reads replies
--- sets clock time
-- Redis's own clock, in microseconds. It may step back, and a promoted replica
-- may be behind: no algorithm lets time run before the newest event of a key.
local time = redis.call('TIME')
local clock = time[1] * 1000000 + time[2]
replies[1] = clock

--- check
--- reads clock
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

--- terms
--- reads algorithm first known max more param shadow slack used which window
--- sets algorithm first first_text known max more param shadow slack used window
-- Makes the terms hold whose number is which.
if which ~= used then
  local i = 3 + (which - 1) * SIZE
  local t = known and known[which]
  if t then
    algorithm, window, max, param, more, shadow, slack, first = unpack(t)
  else
    --- insert term
    if ARGV[2] ~= '1' then
      known = known or {}
      known[which] = { algorithm, window, max, param, more, shadow, slack, first }
    end
  end
  used, first_text = which, nil
  --- insert duration
  --- insert extra term
  --- insert past term
end
--- term
--- reads ceil clock i
--- sets algorithm first max more param shadow slack window
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
--- loop
--- reads each last place times
--- sets place
--- insert gather
-- Takes calls with one limit up to that of the last key. Each stands for times
-- calls in a row, of which as many as there is room for are charged at once.
for i = place, last do
  place = i + 1
  --- insert ready
  local key, cost, charging = KEYS[i], each, true
  local allowed, room, retry, reset, at, delay = 0, nil, nil, nil, nil, nil
  local charged, turn -- at and delay of those calls that fit, if not all do
  --- insert blocked
  --- insert share
  repeat
    local again = false
    --- insert ends
    --- insert look
    --- insert refuse
    if not charging then
      retry, at, delay = retry or 1, charged, turn or delay
    elseif retry then
      --- insert heal
      --- insert place
      at = 0
    --- insert free
    else
      allowed = 1
      if times > 1 then
        --- insert fit
        cost = cost * allowed
      end
      --- insert lift
      --- insert charge
      --- insert keep
      room = room - cost
      if allowed < times then
        charged, turn = at, delay
        again, cost, charging = true, each, false
      end
    end
  until not again
  --- insert reply
  --- insert parted
end
--- fit
--- reads cost room times
--- sets allowed
-- At least one fits, even if the rounding of a large level hides it.
allowed = math.max(1, math.min(times, math.floor(room / cost)))
--- loops
--- reads algorithm
if algorithm == 'ALGORITHM' then
  --- insert loop
end
--- settle
--- reads arg each last place times
--- sets charged made_mark place
--- insert gather
-- Settles charges up to that of the last key, each by the same cost. Where more is charged
-- the mark is 1 if that is to be no more than there is room for, and else 0.
local charged, made_mark = ARGV[arg - 2] + 0, ARGV[arg - 1] + 0
for i = place, last do
  place = i + 1
  --- insert ready
  local key, cost, at = KEYS[i], -each, times -- what goes back, and of when
  local charging, room, retry, reset, delay = false, nil, nil, nil, nil
  --- insert ends
  --- insert share
  if cost > 0 then
    --- insert refund
    --- insert stay
  elseif cost < 0 then
    cost = 0 -- looking for room that there need not be
    --- insert look
    cost = each
    if made_mark == 1 and cost > room then
      cost = room -- the rest is forgiven
    end
    if cost > 0 then
      --- insert active
      --- insert lift
      --- insert charge
      --- insert keep
    end
  end
end
--- renewal
--- reads each last n place replies times
--- sets n place
-- Renews charges up to that of the last key.
for i = place, last do
  place = i + 1
  local key, cost, at, held = KEYS[i], each, times, 0
  --- insert renew
  replies[n + 1], replies[n + 2] = held, 0
  n = n + 2
end
--- failure
--- reads err replies
--- sets failed n
-- A call's failure, a key of a foreign type say, is not another's: the next
-- is decided as if it had not been there.
--- insert cause
-- But a demoted master has written nothing for any call, and the client
-- must learn that it talks to the wrong server.
if string.match(err, '^READONLY') then
  return redis.error_reply(err)
end
--- insert failed
local failed, n = -1, #replies
--- insert fail
--- failed
--- failed to settle
--- reads place replies
replies[#replies + 1] = place - 1
--- cause
--- reads err
--- sets err
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
--- fail
--- reads err failed n replies
--- sets bytes
local bytes = { string.byte(err, 1, math.min(#err, 200)) }
replies[n + 1], replies[n + 2] = failed, #bytes
for i = 1, #bytes do
  replies[n + 2 + i] = bytes[i]
end
--- heal
--- reads call clock key lifetime reset slack
-- Somebody may have removed the expiry of a key, and it would stay for ever; or
-- the key was charged by a shorter window, and would go too early.
if reset and call('PTTL', key) < reset / 1000 then
  call('PEXPIRE', key, lifetime(clock + reset + slack))
end
--- reply
--- reads allowed at clock delay n replies reset retry room
--- sets n room
if room < 0 then
  room = 0
end
if at == clock and not retry and not delay then
  --- insert charged
else
  replies[n + 1], replies[n + 2], replies[n + 3], replies[n + 4] = -2, allowed, room, retry or 0
  replies[n + 5], replies[n + 6], replies[n + 7] = reset or 0, at or 0, delay or 0
  n = n + 7
  --- insert tell
  --- insert long mark
end
--- charged
--- reads n replies reset room
--- sets n
replies[n + 1], replies[n + 2] = room, reset
n = n + 2
--- run
--- reads arg
--- sets arg
arg = arg + 4
--- run to settle
--- reads arg
--- sets arg
arg = arg + 6
--- strings
--- reads keys last place
--- sets before found
-- Reads the STRINGs under the keys of a run at once, if each key comes once.
if keys > 1 then
  found, before = redis.pcall('MGET', unpack(KEYS, place, last)), place - 1
end
--- ready
--- reads before found i
--- sets ready
ready = found and found[i - before]
--- read
--- reads call key ready
--- sets ready state
-- Reads the STRING under key. A value in ready is used once: the key may change then.
state, ready = ready, nil
if not state then
  state = call('GET', key)
end
--- ended (block)
--- reads ended
--- sets ends
if ended > 0 then
  ends = ended
end
--- short (block)
--- reads number state
--- sets ended kind
elseif #state == 8 then
  kind, ended = number('>I1I7', state, 1)
  --- insert ended
--- unmark
--- reads call key
call('SETRANGE', key, '1', '\0\0\0\0\0\0\0')
--- texts
--- reads format sub time
--- sets clock_text text
-- A time is written as text, 16 digits. (Redis itself would write a number that is
-- an argument of redis.call with 17 digits, which is exact, and not scientific for
-- an integer below 2^53, but slow. And texts are not compared, since that takes
-- long where Redis has a locale.)
local clock_text = time[1] .. sub('00000' .. time[2], -6)
local function text(at)
  return format('%010d%06d', at / 1000000, at % 1000000)
end
--- numbers
--- sets bytes number struct
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
