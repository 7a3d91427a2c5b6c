-- The pieces of take.lua for periods of the calendar whose counts are kept when they are
-- over, or whose shares are told. The algorithms say in their headers where both are. A count
-- is final when its period is over: what is settled or given back later does not change it.
--
-- A share is told to the call that takes the count over it, be it a charge, a settlement or a
-- renewal, and once a period. What was told is kept as a number, which only grows in a period:
-- 4 times the TELLS of that call after 80 percent of its max, 5 times that after all of it. So a
-- share of a higher max is told beside that of a lower one.
--
-- TERMS  behind those of reserved.lua, which all terms of the script have then, KEEP, LIFE and
--        TELLS: of how many periods counts are kept, for how long after the end of the present
--        one a key lives for that, and the max by which shares are told; each 0 of other limits.
-- REPLY  to peek, behind what is told of a limit with a KEEP: when the present period has
--        begun, 0 if that is not known; when it ends; how many others follow; and for each,
--        the last one first, when it began, likewise, when it ended, and how much was used.
--        Periods in which nothing was charged are left out.
--        Behind all others, for each key over a share its number, from 1 on, -5, which shares:
--        1 for 80 percent, 2 for all, 3 for both; how much is used; and the microseconds until
--        the period ends.
--
-- CALLS  those of the algorithm; the first charge of a period reads and writes what is kept.
--- past terms
--- sets former keep life tells
-- See TERMS; and what is told of former periods.
local keep, life, tells, former
--- insert ledger terms
--- past term
--- reads i
--- sets keep life tells
keep, life, tells = ARGV[i + 8] + 0, ARGV[i + 9] + 0, ARGV[i + 10] + 0
--- insert ledger term
--- heal
--- reads call clock key life lifetime reset slack
-- As in pieces.lua, for as long as counts are kept.
if reset and call('PTTL', key) < reset / 1000 then
  call('PEXPIRE', key, lifetime(clock + reset + slack + life))
end
--- keep former
--- reads former limit
--- sets former
limit.former, former = former, nil
--- tell former
--- reads limit replies
for _, value in ipairs(limit.former or {}) do
  replies[#replies + 1] = value
end
--- telling
--- reads place
--- sets tell_shares told_all
-- Tells which shares of a key were passed, see REPLY.
local told_all = {}
local function tell_shares(key, passed, used, left)
  local index, n = place, #told_all
  repeat
    index = index - 1
  until KEYS[index] == key
  told_all[n + 1], told_all[n + 2], told_all[n + 3], told_all[n + 4], told_all[n + 5] = index, -5, passed, used, left
end
--- only key
--- sets place
local place = 2
--- find shares
--- reads max tells told used
--- sets passed told
local passed = (told < tells * 4 and max - used <= max / 5 and 1 or 0) + (told < tells * 5 and used >= max and 2 or 0)
if passed > 0 then
  told = tells * (passed > 1 and 5 or 4)
end
--- tell shares
--- reads clock key passed stop tell_shares used
if passed > 0 then
  tell_shares(key, passed, used, stop - clock)
end
--- tell all
--- reads replies told_all
for _, value in ipairs(told_all) do
  replies[#replies + 1] = value
end
