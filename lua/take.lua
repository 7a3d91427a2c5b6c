-- Decides calls: each is charged to all its limits, or to none.
--
-- KEYS   one for every limit, in the order of the calls; all in one slot on a
--        cluster. The keys of one call differ.
-- ARGV   the operation, "take", "peek", "settle", "renew" or "hold", with "check " before it
--        if the server may be one that cannot count; the number of terms, and for
--        each the six values
--          algorithm window max param more mode
--        (times in microseconds; what param and more mean is the algorithm's;
--        mode is 1 for a limit that is counted but refuses nobody, and above
--        that for how long a refused caller stays refused, see block.lua); then
--        for every run of limits, in the order of KEYS,
--          terms  which of them hold, from 1 on; below 0 if another limit of
--                 the same call follows
--          cost   to settle, what to charge however little room there is; below
--                 0, what to give back of a charge
--          times  how many calls in a row this stands for, each of that cost:
--                 only for a call with one limit. 0: beside a queue, charged at the call's turn
--                 if that is not now, and -1 the same of permits. To settle, the time that the
--                 charge counts as, if it is given back; and to renew. To hold, for
--                 how long from now on a block refuses everybody, unless one does for
--                 longer; 0 ends any
--          keys   how many keys in a row, each of them a call of its own, this
--                 holds for: 1 if it is one of several limits of a call, and
--                 to peek; below 0 if some of these keys may be the same
--        and to settle, before these four, what was charged, and the charge's mark; and
--        in a script with shares.lua, behind all runs, the weights of the calls of all keys,
--        and then their tenants
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
--          at       the time that the charge counts as: its own, or that of
--                   its slice; 0 if there is none yet
--          delay    microseconds that the caller must wait for its turn
--        and the mark of the charge, if that is above 0: at is then sent as -at.
--        That begins with -3 if a block refuses the caller, from now on at the
--        latest. For a call that failed -1, the length of the error, and its
--        bytes; and -4 and these for a limit in shadow mode that failed alone,
--        beside others.
-- Time is read once, so all calls happen at the same moment, in order.
local replies = {}
local arg = ARGV[2] * SIZE + 3 - 4 -- the newest run of limits; the next one follows
local place, last = 1, 0 -- the next key, and the last one of that run
--- insert telling

--- insert time
--- insert check
--- insert period
-- Decides as many calls as it can. If one fails it ends with the error, and
-- decides the calls after that one when it is called again.
local function decide()
  --- insert prelude
  local n, keys = #replies, 0 -- of the run of limits
  --- insert several
  while true do
    --- insert scatter
    if place > last then
      --- insert together
      --- insert run
      if arg > LAST then
        return
      end
      keys = ARGV[arg + 3] + 0
      last = place + math.abs(keys) - 1
    end
    local which, each, times = ARGV[arg] + 0, ARGV[arg + 1] + 0, ARGV[arg + 2] + 0
    --- insert terms
    --- insert loops
  end
end

repeat
  local ok, err = pcall(decide)
  if not ok then
    --- insert failure
  end
until ok
--- insert tell all
return replies
