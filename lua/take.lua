-- Decides calls: each is charged to all its limits, or to none.
--
-- KEYS   one for every limit, in the order of the calls; all in one slot on a
--        cluster. The keys of one call differ.
-- ARGV   the operation, "take", "peek" or "refund"; the number of terms, and
--        for each the six values
--          algorithm window max param more shadow
--        (times in microseconds; what param and more mean is the algorithm's;
--        shadow is 1 for a limit that is counted but denies nobody); then for
--        every run of limits, in the order of KEYS,
--          terms  which of them hold, from 1 on; below 0 if another limit of
--                 the same call follows
--          cost
--          times  how many calls in a row this stands for, each of that cost:
--                 only for a call with one limit. For a refund, the time of
--                 the charge
--          keys   how many keys in a row, each of them a call of its own, this
--                 holds for: 1 if it is one of several limits of a call, and
--                 to peek and to refund
-- REPLY  integers, since a reply takes Redis and the client as long as it is
--        long. The time first, and then for every limit
--          left     how much is left, after the charges
--          reset    microseconds until the limit is whole again
--        if all the calls were charged as of that time; or else -2 and
--          allowed  how many of the calls had room. They were charged if
--                   every limit of the call that is not a shadow had room
--          left
--          retry    microseconds until there is room; 0 if there is
--          reset
--          at       the time that the charge counts as: its own, that of its
--                   slice, or the last of its bucket; 0 if there was none
--          delay    microseconds that the caller must wait for its turn
--        For a call that failed -1, the length of the error, and its bytes.
-- Time is read once, so all calls happen at the same moment, in order.
local replies, replied = { clock }, 1

local function reply(allowed, room, retry, reset, at, delay)
  local n = replied
  room = room > 0 and room or 0
  if at == clock and not retry and not delay then
    replies[n + 1], replies[n + 2] = room, reset
    replied = n + 2
    return
  end
  replies[n + 1], replies[n + 2], replies[n + 3] = -2, allowed, room
  replies[n + 4], replies[n + 5] = retry or 0, reset or 0
  replies[n + 6], replies[n + 7] = at or 0, delay or 0
  replied = n + 7
end

-- Makes terms hold, by their number. + 0 makes numbers of arguments.
local used, known, shadow, look, charge, refund
local function use(which)
  if which == used then
    return
  end
  local t = known and known[which]
  if not t then
    local arg = 3 + (which - 1) * 6
    t = algorithms[ARGV[arg]]
    window, max = ARGV[arg + 1] + 0, ARGV[arg + 2] + 0
    param, more, shadow = ARGV[arg + 3] + 0, ARGV[arg + 4] + 0, ARGV[arg + 5] == '1'
    slack = window < 3200000 and math.ceil(window / 4) or 800000
    look, charge, refund = t.look, t.charge, t.refund
    if ARGV[2] ~= '1' then
      known = known or {}
      known[which] = { window, max, param, more, shadow, slack, look, charge, refund }
    end
  else
    window, max, param, more, shadow, slack, look, charge, refund = unpack(t)
  end
  used = which
end

-- Somebody may have removed the expiry of a key, and it would stay for ever; or
-- the key was charged by a shorter window, and would go too early.
local function heal(key, reset)
  if reset and call('PTTL', key) < reset / 1000 then
    call('PEXPIRE', key, lifetime(clock + reset + slack))
  end
end

-- Takes calls with one limit up to that of the last key. Each stands for times
-- calls in a row, of which as many as there is room for are charged at once.
local key = 1 -- the next one
local function take(cost, times, last)
  for i = key, last do
    local name = KEYS[i]
    key = i + 1
    local room, retry, reset, at, a, b, c, d = look(name, cost, true)
    if retry then
      heal(name, reset)
      reply(0, room, retry, reset)
    else
      -- At least one fits, even if the rounding of a large level hides it.
      local fit = times == 1 and 1 or math.max(1, math.min(times, math.floor(room / cost)))
      local delay
      reset, at, delay = charge(name, cost * fit, at, a, b, c, d)
      room = room - cost * fit
      if fit < times then
        room, retry, reset = look(name, cost)
        retry = retry or 1
      end
      reply(fit, room, retry, reset, at, delay)
    end
  end
end
