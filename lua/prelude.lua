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
--     delay   of a queue that cost fits in: microseconds until the turn, unless that is now
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
-- nothing, as if Redis had lost the key: it would refuse calls for as long as the step was.
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
--- insert block
--- insert extra terms
--- insert past terms

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
--- insert shared
