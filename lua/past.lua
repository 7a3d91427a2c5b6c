-- The pieces of take.lua for periods of the calendar whose counts are kept when they are
-- over. The algorithms say in their headers where. A count is final then: what is settled
-- or given back later does not change it.
--
-- TERMS  behind those of reserved.lua, which all terms of the script have then, KEEP and
--        LIFE: of how many periods counts are kept, and for how long after the end of the
--        present one a key lives for that; 0 and 0 of other limits.
-- REPLY  to peek, behind what is told of a limit with a KEEP: when the present period has
--        begun, 0 if that is not known; when it ends; how many others follow; and for each,
--        the last one first, when it began, likewise, when it ended, and how much was used.
--        Periods in which nothing was charged are left out.
--
-- CALLS  those of the algorithm; the first charge of a period reads and writes what is kept.
--- past terms
--- sets former keep life
-- See TERMS; and what is told of former periods.
local keep, life, former
--- past term
--- reads i
--- sets keep life
keep, life = ARGV[i + 8] + 0, ARGV[i + 9] + 0
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
