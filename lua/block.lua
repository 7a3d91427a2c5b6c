-- The pieces of take.lua for limits with a block: a caller that such a limit refuses
-- stays refused for that long from the refusal on.
--
-- A hold is a block of the key for all callers, whether or not the limit has room. Blocks
-- and holds are stored and end alike.
--
-- A block refuses calls of cost 0, too, which only limits with a block are asked about. There
-- is room for them however little that is: they begin no block, and write nothing.
--
-- The block is part of the limit's own key, as the time in microseconds at which it
-- ends: each algorithm says in its header where. Keys of limits with a block have
-- names of their own, so scripts without these pieces never meet one. The limit is
-- blocked as long as its time, which look calls at, is before that end; it does not
-- matter which limit began the block, or with which terms.
--
-- CALLS  what look reads holds the block, if there is one; a ZSET is read once more
--        then. The refusal that begins it: one write, by ZADD, SETRANGE or GET and SET; PTTL, and PEXPIRE if the key would go before the block ends.
--        Later refusals write nothing. The first charge after the end: ZREM, unless
--        the state is a STRING.
--
-- An algorithm has these pieces, besides those that it puts into its own:
--   mark   writes the block that ends at ends, and sets written to the reply
--   drop   removes it, if the charge that follows does not
--   release  removes it, if drop does not since every charge does
--   whole  sets reset, if look may have left it out, and sets none if the limit is
--          whole
--- block
--- sets block
-- For how long a refusal by the limit blocks; 0 and 1 are none.
local block
--- forget
--- sets ends
ends = nil
--- forget to hold
--- sets ends forgotten
ends, forgotten = nil, true
--- duration
--- reads i
--- sets block
block = ARGV[i + 5] + 0
--- ends
--- sets active ends
-- When the block ends that look has found, if any; and whether the limit is blocked.
local ends, active
--- blocked
--- sets blocked
local blocked -- the caller is, from now on at the latest
--- begin
--- reads at block ends written
--- sets blocked ends
if ends then
  --- insert drop
end
ends = at + block
--- insert mark
-- A Redis that takes no writes, for lack of memory say, still refuses the call.
blocked = type(written) ~= 'table' or written.ok ~= nil
if blocked then
  --- insert outlive
end
--- outlive
--- reads call clock ends key lifetime slack
if call('PTTL', key) < (ends - clock) / 1000 then
  call('PEXPIRE', key, lifetime(ends + slack))
end
--- rest
--- reads blocked clock ends reset retry
--- sets reset retry
if blocked then
  retry = math.max(retry or 0, ends - clock)
  reset = math.max(reset or 0, ends - clock)
end
--- active
--- reads at ends
--- sets active
active = ends and ends > at
--- fits
--- reads cost retry
--- sets retry
retry = cost > 0 and retry or nil
--- free
--- reads cost times
--- sets allowed at
elseif cost == 0 then
  --- insert whole
  allowed, at = times, 0
--- refuse
--- reads active allowed block blocked charging retry shadow
--- sets blocked room
--- insert active
--- insert fits
if active and not shadow then
  blocked = true
  if charging and not retry then
    --- insert whole
  end
elseif (retry or not charging) and block > 1 then
  --- insert begin
end
--- insert rest
if blocked and allowed == 0 then
  room = 0
end
--- lift
--- reads ends
if ends then
  --- insert drop
end
--- keep
--- reads active
-- A limit is charged while it is blocked if it is in shadow mode by now, or a call
-- is settled. That does not end the block, of which the charge has left nothing.
if active then
  --- insert mark
  --- insert outlive
end
--- stay
--- reads ends
if ends then -- and a refund has written what comes behind it
  --- insert mark
  --- insert outlive
end
--- tell
--- reads blocked n replies
if blocked then
  replies[n - 6] = -3
end
--- see
--- reads active shadow
--- sets blocked room
--- insert active
--- insert fits
local blocked = active and not shadow
--- insert rest
if blocked then
  room = 0
end
--- begins
--- reads blocked reset retry room
, blocked, function()
  --- insert begin
  --- insert rest
  return blocked and 0 or room, retry, reset, blocked
end
--- looked
--- reads algorithm limit looks
limit.room, limit.retry, limit.reset, limit.turn, limit.charge, limit.blocked, limit.begin, limit.place = looks[algorithm](limit.key, limit.cost)
--- peeked
--- reads algorithm limit looks
limit.room, limit.retry, limit.reset, limit.turn, limit.charge, limit.blocked = looks[algorithm](limit.key, limit.cost)
--- spared
--- reads limit
if limit.cost == 0 and not limit.retry then
  return
end
--- refused
--- reads block limit
if limit.retry and not limit.blocked and block > 1 then
  limit.room, limit.retry, limit.reset, limit.blocked = limit.begin()
end
--- told
--- reads limit
--- sets blocked
blocked = limit.blocked
--- holding
--- reads blocked call ends last n place replies times written
--- sets block n place
--- insert gather
-- Holds keys up to that of the last key.
for i = place, last do
  place = i + 1
  --- insert ready
  local key, cost, charging = KEYS[i], 0, true
  local room, retry, reset, at, delay = nil, nil, nil, nil, nil
  local forgotten -- what the key holds is from before the clock stepped back
  --- insert blocked
  --- insert ends
  --- insert share
  --- insert look
  if forgotten then
    call('UNLINK', key)
  end
  if times == 0 then
    if ends then
      --- insert drop
      --- insert release
    end
  elseif not ends or ends < at + times then
    block = times
    --- insert begin
    if not blocked then
      error(written.err, 0)
    end
  end
  replies[n + 1], replies[n + 2] = 0, 0
  n = n + 2
end
