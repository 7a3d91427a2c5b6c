-- Decides calls: each is charged to all its limits, or to none.
--
-- KEYS   one for every limit, in the order of the calls; all in one slot on a
--        cluster. The keys of one call differ.
-- ARGV   the operation, "take", "peek" or "refund"; the number of terms, and
--        for each the seven values
--          algorithm window max param fine wait shadow
--        (times in microseconds; shadow is 1 for a limit that is counted but
--        denies nobody); then for every limit
--          terms  which of them hold, from 1 on; below 0 if another limit of
--                 the same call follows
--          cost
--          times  how many calls in a row this stands for, each of that cost:
--                 only for a call with one limit. For a refund, the time of
--                 the charge
-- REPLY  integers. For a call that failed -1, the length of the error, and its
--        bytes; else for every limit
--          allowed  how many of the calls had room. They were charged if
--                   every limit of the call that is not a shadow had room
--          left     how much is left, after the charges
--          retry    microseconds until there is room; 0 if there is
--          reset    microseconds until the limit is whole again
--          at       the time that the charge counts as: its own, that of its
--                   slice, or the last of its bucket; 0 if there was none
--          delay    microseconds that the caller must wait for its turn
-- Time is read once, so all calls happen at the same moment, in order.
local TERMS = 7
local operation, terms = ARGV[1], tonumber(ARGV[2])

-- A limit on terms that are yet to get a key, a cost and times.
local function new_limit(which)
  local arg = 3 + (which - 1) * TERMS
  return {
    algorithm = algorithms[ARGV[arg]],
    window = tonumber(ARGV[arg + 1]),
    max = tonumber(ARGV[arg + 2]),
    param = tonumber(ARGV[arg + 3]),
    fine = tonumber(ARGV[arg + 4]),
    wait = tonumber(ARGV[arg + 5]),
    shadow = ARGV[arg + 6] == '1',
    at = 0, room = 0, left = 0, newest = 0, -- so that there is room for them
  }
end

local replies, replied = {}, 0

local function reply(limit, allowed, charged)
  replies[replied + 1] = allowed
  replies[replied + 2] = limit.room > 0 and limit.room or 0
  replies[replied + 3] = limit.retry or 0
  replies[replied + 4] = limit.reset or 0
  replies[replied + 5] = charged or 0
  replies[replied + 6] = charged and limit.delay or 0
  replied = replied + 6
end

-- Somebody may have removed the expiry of a key, and it would stay for ever.
local function heal(key, limit)
  if limit.reset and redis.call('PTTL', key) == -1 then
    redis.call('PEXPIRE', key, lifetime(clock + limit.reset))
  end
end

-- Calls in a row with the same one limit: as many as there is room for are
-- charged at once.
local function take_alike(key, limit)
  limit.algorithm.look(key, limit)
  if limit.retry then
    heal(key, limit)
    return reply(limit, 0)
  end
  local cost, times = limit.cost, limit.times
  -- At least one fits, even if the rounding of a bucket's level hides it.
  local fit = math.max(1, math.min(times, math.floor(limit.room / cost)))
  limit.cost = cost * fit
  limit.algorithm.charge(key, limit)
  limit.room = limit.room - limit.cost
  local charged = limit.at
  if fit < times then
    limit.cost, limit.reset = cost, nil
    limit.algorithm.look(key, limit)
  end
  reply(limit, fit, charged)
end

local function take_together(limits)
  local admitted = true
  for _, limit in ipairs(limits) do
    limit.algorithm.look(limit.key, limit)
    admitted = admitted and (limit.shadow or not limit.retry)
  end
  for _, limit in ipairs(limits) do
    if admitted and not limit.retry then
      limit.algorithm.charge(limit.key, limit)
      limit.room = limit.room - limit.cost
      reply(limit, 1, limit.at)
    else
      heal(limit.key, limit)
      reply(limit, limit.retry and 0 or 1)
    end
  end
end

local function peek(limits)
  for _, limit in ipairs(limits) do
    limit.algorithm.look(limit.key, limit)
    reply(limit, limit.retry and 0 or 1)
  end
end

local function refund(limits)
  for _, limit in ipairs(limits) do
    limit.at = limit.times
    limit.algorithm.refund(limit.key, limit)
    reply(limit, 0)
  end
end

-- What went wrong, as text: from Redis 7.0 on a raised error is a table, and
-- before a text that may begin with a place in the script.
local function failure(err)
  if type(err) == 'table' then
    err = err.err
  end
  return string.match(err, '(%u%u+ .*)$') or 'ERR ' .. err
end

local act = { take = take_together, peek = peek, refund = refund }
local singles = {} -- a limit for each terms, used by one call after another
local next_key, arg = 1, 3 + terms * TERMS
while arg <= #ARGV do
  local before, ok, err = replied
  local which = tonumber(ARGV[arg])
  if operation == 'take' and which > 0 then
    local limit = singles[which] or new_limit(which)
    singles[which] = limit
    limit.cost, limit.times = tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
    limit.retry, limit.reset, limit.delay = nil, nil, nil
    ok, err = pcall(take_alike, KEYS[next_key], limit)
    next_key, arg = next_key + 1, arg + 3
  else
    local limits, more = {}, true
    while more do
      which = tonumber(ARGV[arg])
      more = which < 0
      local limit = new_limit(math.abs(which))
      limit.key, limit.cost, limit.times = KEYS[next_key], tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
      limits[#limits + 1] = limit
      next_key, arg = next_key + 1, arg + 3
    end
    ok, err = pcall(act[operation], limits)
  end
  if not ok then
    -- One call's failure, a key of a foreign type say, is not another's. But
    -- a demoted master has written nothing for any call, and the client must
    -- learn that it talks to the wrong server.
    err = failure(err)
    if string.match(err, '^%-?READONLY') then
      return redis.error_reply(err)
    end
    replied = before
    for _, n in ipairs({ -1, #err, string.byte(err, 1, math.min(#err, 200)) }) do
      replied = replied + 1
      replies[replied] = n
    end
    replies[before + 2] = math.min(#err, 200)
    for i = replied + 1, #replies do
      replies[i] = nil
    end
  end
end
return replies
