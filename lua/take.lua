-- Decides calls: each is charged to all its limits, or to none.
--
-- KEYS   one for every limit, in the order of the calls; all in one slot on a
--        cluster. The keys of one call differ.
-- ARGV   the operation, "take", "peek" or "refund"; then for every call the
--        number of its limits and for each of them nine values:
--          algorithm window max cost param fine wait shadow at
--        Times are in microseconds. shadow is 1 for a limit that is counted
--        but denies nobody. at is the time of the charge to refund, or 0.
-- REPLY  an array with an element for every call: an error, or an array with
--        six integers for every limit:
--          allowed  1 if the limit had room. It was charged if every limit of
--                   the call that is not a shadow had.
--          left     how much is left, after the charge if there was one
--          retry    microseconds until there is room; 0 if there is
--          reset    microseconds until the limit is whole again
--          at       the time that the charge counts as: its own, that of its
--                   slice, or the last of its bucket; 0 if there was none
--          delay    microseconds that the caller must wait for its turn
-- Time is read once, so all calls happen at the same moment, in order.
local function limit_at(arg, key)
  return {
    key = key,
    algorithm = algorithms[ARGV[arg]],
    window = tonumber(ARGV[arg + 1]),
    max = tonumber(ARGV[arg + 2]),
    cost = tonumber(ARGV[arg + 3]),
    param = tonumber(ARGV[arg + 4]),
    fine = tonumber(ARGV[arg + 5]),
    wait = tonumber(ARGV[arg + 6]),
    shadow = ARGV[arg + 7] == '1',
    at = tonumber(ARGV[arg + 8]),
  }
end

local function refund(limits)
  for _, limit in ipairs(limits) do
    limit.algorithm.refund(limit.key, limit)
  end
  return {}
end

local function take(limits, charge)
  local admitted = true
  for _, limit in ipairs(limits) do
    limit.algorithm.look(limit.key, limit)
    admitted = admitted and (limit.shadow or not limit.retry)
  end
  local reply = {}
  for _, limit in ipairs(limits) do
    local charged = charge and admitted and not limit.retry
    if charged then
      limit.algorithm.charge(limit.key, limit)
      limit.room = limit.room - limit.cost
    elseif charge and limit.reset and redis.call('PTTL', limit.key) == -1 then
      -- Somebody removed the expiry: without one the key might stay for ever.
      redis.call('PEXPIREAT', limit.key, milliseconds(clock + limit.reset))
    end
    reply[#reply + 1] = limit.retry and 0 or 1
    reply[#reply + 1] = math.max(0, limit.room)
    reply[#reply + 1] = limit.retry or 0
    reply[#reply + 1] = limit.reset or 0
    reply[#reply + 1] = charged and limit.at or 0
    reply[#reply + 1] = charged and limit.delay or 0
  end
  return reply
end

-- What went wrong, as a Redis error: from Redis 7.0 on a raised error is a
-- table, and before a text that may begin with a place in the script.
local function failure(err)
  if type(err) == 'table' then
    err = err.err
  end
  return redis.error_reply(string.match(err, '(%u%u+ .*)$') or 'ERR ' .. err)
end

local operation, replies, key, arg = ARGV[1], {}, 1, 2
while arg <= #ARGV do
  local limits = {}
  for i = 1, tonumber(ARGV[arg]) do
    limits[i] = limit_at(arg + 1 + (i - 1) * 9, KEYS[key])
    key = key + 1
  end
  arg = arg + 1 + #limits * 9
  local ok, reply
  if operation == 'refund' then
    ok, reply = pcall(refund, limits)
  else
    ok, reply = pcall(take, limits, operation == 'take')
  end
  if not ok then
    -- One call's failure, a key of a foreign type say, is not another's. But
    -- a demoted master has written nothing for any call, and the client must
    -- learn that it talks to the wrong server.
    reply = failure(reply)
    if string.match(reply.err, '^%-?READONLY') then
      return reply
    end
  end
  replies[#replies + 1] = reply
end
return replies
