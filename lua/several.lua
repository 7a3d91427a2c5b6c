-- The rest of take.lua, for what is not a call with one limit that is taken:
-- calls with several limits, and what peeks and refunds.

local function take_all(limits)
  local admitted = true
  for _, limit in ipairs(limits) do
    use(limit.terms)
    limit.seen = { look(limit.key, limit.cost) }
    admitted = admitted and (shadow or not limit.seen[2])
  end
  for _, limit in ipairs(limits) do
    use(limit.terms)
    local seen = limit.seen
    if admitted and not seen[2] then
      limit.reset, limit.at, limit.delay = charge(limit.key, limit.cost, unpack(seen, 4, 8))
      seen[1] = seen[1] - limit.cost
    else
      heal(limit.key, seen[3])
      limit.reset = seen[3]
    end
  end
  for _, limit in ipairs(limits) do
    local seen = limit.seen
    reply(seen[2] and 0 or 1, seen[1], seen[2], limit.reset, limit.at, limit.delay)
  end
end

local function peek_all(limits)
  local seen = {}
  for i, limit in ipairs(limits) do
    use(limit.terms)
    seen[i] = { look(limit.key, limit.cost) }
  end
  for _, found in ipairs(seen) do
    reply(found[2] and 0 or 1, found[1], found[2], found[3])
  end
end

local function refund_all(limits)
  for _, limit in ipairs(limits) do
    use(limit.terms)
    refund(limit.key, limit.cost, limit.times)
  end
  for _ in ipairs(limits) do
    reply(0, 0)
  end
end

several = { take = take_all, peek = peek_all, refund = refund_all }
