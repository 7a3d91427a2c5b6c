-- What every algorithm shares: the clock, the terms, and the expiry of a key.
--
-- An algorithm is a table of three functions on a key and a cost. They go by
-- the terms below and keep what they know in locals, since a table for each
-- call would take longer than the decision.
--
--   look(key, cost, charging)   reads, and returns
--     room    how much could be charged now, below 0 if max was lowered
--     retry   if cost does not fit: microseconds until it will; else nil
--     reset   microseconds until the limit is whole again; nil: it is. It may
--             be missing when charging is true and cost fits
--     at      the time now, never before the newest event
--     and up to four values more, which charge is given back
--   charge(key, cost, at, ...)   writes what look found to fit, and returns
--     reset   as above
--     at      the time that the charge counts as
--     delay   microseconds that the caller must wait for its turn; nil: none
--   refund(key, cost, at)   takes back up to cost of what was charged as of at
--
-- Redis makes every function of a script anew for each execution, and each
-- variable that one shares with another: so there are few, and those that are
-- seldom needed are only made then.
local algorithms, operation = {}, ARGV[1]
local call, format = redis.call, string.format

-- The terms of the limit that is being decided, see take.lua. Times are in
-- microseconds.
local window, max, param, more
local slack -- for how much longer than need be a key may live, see lifetime

-- Redis's own clock, in microseconds. It may step back, and a promoted replica
-- may be behind: no algorithm lets time run before the newest event of a key.
local time = call('TIME')
local clock, clock_text = time[1] * 1000000 + time[2], format('%010d%06d', time[1], time[2])

local several -- what several.lua defines, if it is part of the script

-- An integer as text, never in scientific notation. Redis itself writes a
-- number that is an argument of redis.call with 17 digits, which is exact and
-- not scientific for an integer below 2^53; but for a long one that takes as
-- long as a read of a key, so it is left to short ones. What calls of one trip
-- have in common is formatted once.
local last, last_text = clock, clock_text
local function text(n)
  if n == clock then
    return clock_text
  end
  if n ~= last then
    last, last_text = n, format('%.0f', n)
  end
  return last_text
end

-- A STRING of somebody else's has the right type and says nothing.
local FOREIGN = 'WRONGTYPE Operation against a key holding something that no rate limit wrote'

-- How many milliseconds a key lives on that means something until a time. It is
-- counted from now, and is a little more than that: Redis would drop a key at
-- once that is to expire in its past, which a short window is when the script
-- has run for long, and calls later in the script would find it empty.
--
-- Setting an expiry takes as long as writing an event. So an algorithm that can
-- tell from what it has read that a charge shortly before set one sets it for
-- slack longer, a quarter of the window and at most 0.8 seconds, and leaves it
-- until that is used up.
local dead, life
local function lifetime(at)
  if at ~= dead then
    life = math.ceil((at - clock) / 1000) + 100
    dead, life = at, format(life < 2 ^ 31 and '%d' or '%.0f', life)
  end
  return life
end
