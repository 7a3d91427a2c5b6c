-- Token bucket and leaky bucket that tenants share: all calls with a key charge one bucket, and
-- each call is for a tenant. Only tenants that have used less than the heaviest get the last tokens:
-- one for each event that they are behind, or all if they have used half as much or less.
-- The level and the time to wait are computed as in bucket.lua.
--
-- KEY    a ZSET. Each tenant is a member, up to 100,000 of them. The first member, at -inf, has
--        a byte that is 3, the numbers of bucket.lua beginning with when the key expires, BASE in
--        5 bytes, START and WINDOW. A blocked tenant has one more member, a byte that is 4 and its
--        name; the name is a byte that is 5 if all are blocked. Its score is minus the end of the block.
--
-- The use of a tenant decays by 1/e in a window. A tenant that had used so much at the time t has the score
--   ln(used / weight) + BASE + (t - START) / WINDOW
-- So time does not change the order of tenants, and no score has to be renewed. (Cormode et al.,
-- "Forward decay", ICDE 2009.) All tenants begin anew when a window has passed without a charge, or
-- when the rule has another window: BASE then grows so much that earlier scores stand for nothing.
-- The use of a tenant is a whole number of millionths. Exponential and logarithm consist of basic
-- operations, which are rounded alike everywhere, so memory decides as the script does.
--
-- MORE   the headroom: how many the last tokens are.
-- CALLS  look: ZRANGE ZSCORE ZREVRANGE. charge: ZADD ZREM, and PEXPIRE as for a bucket. The charge
--        of a new tenant also calls ZCOUNT and ZRANGEBYSCORE, and removes up to eight tenants that
--        have used a millionth of what the heaviest has, or the lightest of too many. refund: all of
--        these. With a block: two ZSCORE more, and for a charge ZRANGEBYSCORE.
--
-- RetryAfter is when the level has room for any tenant. One that is behind may have room earlier, but
-- how far it is behind decays, so it may lose that room again. Its refusal has the delay 1.
--- extra terms
--- sets tenant weight
-- Whom a call is for.
local weight, tenant
--- claim
--- reads arg
--- sets tenant weight
weight, tenant = ARGV[arg + 4] + 0, ARGV[arg + 5]
--- lone claim
--- sets tenant weight
weight, tenant = ARGV[COST + 1] + 0, ARGV[COST + 2]
--- keep claim
--- reads arg limits
limits[#limits].weight, limits[#limits].tenant = ARGV[arg + 4] + 0, ARGV[arg + 5]
--- limit claim
--- reads limit
--- sets tenant weight
weight, tenant = limit.weight, limit.tenant
--- gather
--- open
--- reads call ceil clock key more number tenant window
--- sets base begun expires halvings headroom kind lost more rest score since start
--- sets state stored top
local state, score, top = call('ZRANGE', key, '0', '0')[1], call('ZSCORE', key, tenant), nil
--- insert barred
local expires, since, stored, begun, halvings, rest
local headroom, more, base, start, lost = more, -1, 0, clock, nil
local kind = state and string.byte(state)
if kind == 3 then
  local of
  expires, since, stored, begun, halvings, rest, base, start, of = number('>I7I7I8I7I2I5I5I7I7', state, 2)
  if since > clock + window then -- from before the clock stepped back
    base, start, score, lost = 0, clock, nil, true
  else
    if of ~= window or since + window <= clock then
      base, start = base + ceil((since - start) / of) + 128, clock
    end
    top = call('ZREVRANGE', key, '0', '0', 'WITHSCORES')[2] + 0
    top = top > -1000000000000 and top -- else there is no tenant
  end
elseif kind == 4 then
  state = nil
elseif state then
  error('members of another kind')
end
--- fair
--- reads at base cost decayed headroom level param score start top weight window
--- sets behind delay filled heaviest most passes room tokens unit used zero
local zero, unit, passes = base + (at - start) / window, weight * 1000000, nil
local tokens, filled, used, heaviest, behind = headroom * 1000000, level, 0, 0, 0
if score then
  local log, scale = score - zero, unit
  --- insert decayed
  used = decayed
end
if top then
  local log, scale = top - zero, unit
  --- insert decayed
  heaviest = decayed
end
--- insert rule
room = param * 1000000 - level - tokens
if heaviest - used > math.max(0, room) then
  local weighs = math.max(1, 2 * tokens / heaviest)
  room = math.min(room + tokens, (room + (heaviest - used) * weighs) / (1 + weighs))
end
room = room / 1000000 + 0.000000001
room = room - room % 1
if cost > 0 and not passes then
  most = (param - cost - math.min(headroom, param - cost)) * 1000000
  delay = behind > 0 and level > most and 1 or nil
end
--- decayed
--- reads log scale
--- sets decayed doublings log
-- decayed becomes scale times the exponential of log, which is at most 0 but for rounding.
local doublings = log * 1.4426950408889634 + 0.5
doublings = doublings - doublings % 1
log = log - doublings * 0.6931471805599453
local decayed = 1 / 40320 + log * (1 / 362880 + log * (1 / 3628800 + log * (1 / 39916800)))
decayed = 1 / 24 + log * (1 / 120 + log * (1 / 720 + log * (1 / 5040 + log * decayed)))
decayed = (1 + log * (1 + log * (1 / 2 + log * (1 / 6 + log * decayed)))) * 2 ^ doublings * scale + 0.5
decayed = decayed - decayed % 1
--- rank
--- reads unit used zero
--- sets doublings rank scale square
-- The score of what is used.
local scale, doublings = math.frexp(used / unit)
if scale < 0.7071067811865476 then
  scale, doublings = scale * 2, doublings - 1
end
scale = (scale - 1) / (scale + 1)
local square = scale * scale
local rank = 1 / 9 + square * (1 / 11 + square * (1 / 13 + square * (1 / 15 + square * (1 / 17))))
rank = 1 + square * (1 / 3 + square * (1 / 5 + square * (1 / 7 + square * rank)))
rank = (zero + doublings * 0.6931471805599453 + 2 * scale * rank) * 1000000000000 + 0.5
rank = (rank - rank % 1) / 1000000000000
--- rule
--- reads cost filled heaviest most tokens used
--- sets behind passes
-- Whether a call fits into what is filled by then.
behind = heaviest - used - cost * 1000000
passes = math.min(tokens, most)
if behind > 0 then
  passes = math.max(0, passes - behind * math.max(1, 2 * tokens / heaviest))
end
passes = filled <= most - passes
--- fit
--- reads allowed cost decayed filled heaviest passes rank times unit used zero
--- sets allowed filled heaviest last used
-- How many calls fit, one after the other. Each reads the score that the one before it would write.
local last = used
while passes and allowed < times do
  filled, used = filled + cost * 1000000, used + cost * 1000000
  do
    --- insert rank
    local log, scale = rank - zero, unit
    --- insert decayed
    used = decayed
  end
  heaviest = math.max(heaviest, used)
  --- insert rule
  if passes then
    allowed, last = allowed + 1, used
  end
end
used = last - (allowed - 1) * cost * 1000000
--- reclaim
--- reads at back decayed made start used window
--- sets closing used
-- A refund takes from the tenant's use what has not decayed of the charge.
if made >= start and used > 0 then
  local log, scale = (made - at) / window, back
  --- insert decayed
  used = used - math.min(decayed, back)
  used = used > 2 and used or 0 -- not what rounding has left
  closing = true
end
--- write
--- reads at base begun bytes call cost expires format fresh halvings key level
--- reads lifetime lost max rank rest score slack start state tenant top used
--- reads window
--- sets begun drain expires gone halvings lasts lives members rest spare state stop
--- sets used
used = used + cost * 1000000
local drain = level * window / (max * 1000000)
local stop = at + drain + -drain % 1
local lives = math.max(stop, at + window)
--- insert barred lives
local spare = expires and expires - lives
local lasts = spare and spare >= 0 and spare <= slack
if fresh then
  begun, halvings, rest = at, 0, 2 ^ 40 - 1
end
expires = lasts and expires or lives + slack
local members = { '-inf', '\3' .. bytes('>I7I7I8I7I2I5I5I7I7', expires, at, level, begun, halvings, rest, base, start, window) }
local gone = {}
if lost then
  call('UNLINK', key)
  state = nil
elseif top and not score then
  local full = call('ZCOUNT', key, '-1000000000000', '+inf') >= 100000
  gone = call('ZRANGEBYSCORE', key, '-1000000000000', full and '+inf' or format('%.12f', top - 14),
    'LIMIT', '0', full and '1' or '8')
end
if used > 0 then
  --- insert rank
  members[3], members[4] = format('%.12f', rank), tenant
else
  gone[1] = tenant
end
if state ~= members[2] then
  gone[#gone + 1] = state
end
call('ZADD', key, unpack(members)) -- first, since a server without memory refuses it
if gone[1] then
  call('ZREM', key, unpack(gone))
end
if not lasts then
  call('PEXPIRE', key, lifetime(expires))
end
--- barred (block)
--- reads call key tenant
--- sets all barred ends
local barred, all = call('ZSCORE', key, '\4' .. tenant), call('ZSCORE', key, '\4\5')
ends = math.max(barred and -barred or 0, all and -all or 0)
ends = ends > 0 and ends or nil
--- barred lives (block)
--- reads call key lives
--- sets latest lives
local latest = call('ZRANGEBYSCORE', key, '(-inf', '-1000000000000', 'WITHSCORES', 'LIMIT', '0', '1')[2]
lives = latest and math.max(lives, -latest) or lives
--- lift (block)
--- reads active ends
if ends and not active then
  --- insert drop
end
--- keep (block)
--- stay (block)
--- mark
--- reads call clock ends format key tenant
--- sets over written
local over = call('ZREVRANGEBYSCORE', key, '-1000000000000', format('(-%.0f', clock), 'LIMIT', '0', '8')
if over[1] then
  call('ZREM', key, unpack(over))
end
local written = redis.pcall('ZADD', key, format('-%.0f', ends), '\4' .. tenant)
--- drop
--- reads call key tenant
call('ZREM', key, '\4' .. tenant)
