-- What every algorithm shares: the clock, and the expiry of a key.
--
-- An algorithm is a table of three functions over a limit, the table that
-- take.lua fills from ARGV (window max cost param wait, times in microseconds):
--
--   look(key, limit)    reads, and sets
--     limit.room     how much could be charged now, below 0 if max was lowered
--     limit.retry    if the charge does not fit: microseconds until it will
--     limit.reset    microseconds until the limit is whole again; nil: it is
--     limit.at       the time now, never before the newest event
--   charge(key, limit)  writes what look found to fit; sets reset anew, at to
--                       the time that the charge counts as, and limit.delay if
--                       the caller must wait for its turn
--   refund(key, limit)  takes back up to cost of what was charged as of at
local algorithms = {}

-- Redis's own clock, in microseconds. It may step back, and a promoted replica
-- may be behind: no algorithm lets time run before the newest event of a key.
local time = redis.call('TIME')
local clock = time[1] * 1000000 + time[2]

-- An integer as text, never in scientific notation.
local clock_text = string.format('%.0f', clock)
local function text(n)
  return n == clock and clock_text or string.format('%.0f', n)
end

-- A STRING of somebody else's has the right type and says nothing.
local function foreign()
  error({ err = 'WRONGTYPE Operation against a key holding something that no rate limit wrote' })
end

-- How many milliseconds a key lives on that means something until a time. It is
-- counted from now, and is a little more than that: Redis would drop a key at
-- once that is to expire in its past, which a short window is when the script
-- has run for long, and calls later in the script would find it empty.
local function lifetime(at)
  return text(math.ceil((at - clock) / 1000) + 100)
end
