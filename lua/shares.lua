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
--        these. With a block: two ZSCORE more, and for a charge ZRANGEBYSCORE. Without one, calls of a
--        key that follow each other call ZMSCORE in place of ZSCORE and share all commands, up to
--        the call of a new tenant.
--
-- RetryAfter is when the level has room for any tenant. One that is behind may have room earlier, but
-- how far it is behind decays, so it may lose that room again. Its refusal has the delay 1.
--- period
--- sets apart
-- Redis has refused to write several calls at once: each is written by itself.
local apart
--- extra terms
--- sets tenant tenants weight weights
-- Whom a call is for.
local weight, tenant
local tenants, weights = #ARGV - #KEYS, #ARGV - 2 * #KEYS -- where those of the keys begin
--- insert kept
--- kept (run)
--- sets extends gone lost members numbers of_key redo scores state top
-- The key whose calls are decided, and its state after the calls so far.
local of_key, state, numbers, scores, top, lost
-- The changes that are not written yet.
local members, gone, extends, redo
--- ready
--- reads i tenants weights
--- sets tenant weight
weight, tenant = ARGV[weights + i] + 0, ARGV[tenants + i]
--- lone claim
--- sets tenant weight
weight, tenant = ARGV[COST + 1] + 0, ARGV[COST + 2]
--- keep claim
--- reads limits place tenants weights
limits[#limits].weight, limits[#limits].tenant = ARGV[weights + place] + 0, ARGV[tenants + place]
--- limit claim
--- reads limit
--- sets tenant weight
weight, tenant = limit.weight, limit.tenant
--- gather
--- open
--- reads ceil clock more numbers window
--- sets base begun expires halvings headroom more rest since start stored
--- insert acquaint
local expires, since, stored, begun, halvings, rest
local headroom, more, base, start = more, -1, 0, clock
if numbers then
  local of
  expires, since, stored, begun, halvings, rest, base, start, of = unpack(numbers)
  if of ~= window or since + window <= clock then
    base, start = base + ceil((since - start) / of) + 128, clock
  end
end
--- acquaint
--- reads call key tenant
--- sets lost numbers score state top
local state, score = call('ZRANGE', key, '0', '0')[1], call('ZSCORE', key, tenant)
local numbers, top, lost
--- insert barred
--- insert stated
--- acquaint (run)
--- reads apart call i key of_key scores tenant tenants
--- sets lost numbers of_key score scores state top
local score
if key ~= of_key then
  of_key, scores, numbers, top, lost = key, {}, nil, nil, nil
  state = call('ZRANGE', key, '0', '0')[1]
  --- insert stated
  if numbers then
    local ahead = i
    while KEYS[ahead + 1] == key and not apart do
      ahead = ahead + 1
    end
    for j, score in ipairs(call('ZMSCORE', key, unpack(ARGV, tenants + i, tenants + ahead))) do
      scores[ARGV[tenants + i + j - 1]] = score and score + 0
    end
  end
end
score = scores[tenant]
--- stated
--- reads call clock key number state window
--- sets kind lost numbers score state top
local kind = state and string.byte(state)
if kind == 3 then
  numbers = { number('>I7I7I8I7I2I5I5I7I7', state, 2) }
  if numbers[2] > clock + window then -- from before the clock stepped back
    numbers, score, lost = nil, nil, true
    --- insert forget
  else
    top = call('ZREVRANGE', key, '0', '0', 'WITHSCORES')[2] + 0
    top = top > -1000000000000 and top or nil -- else there is no tenant
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
--- reads at cost expires fresh level max slack used window
--- sets begun drain expires halvings lasts lives rest spare stop used
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
--- insert store
--- store
--- reads at base begun bytes call expires format halvings key level rank rest
--- reads start tenant used window
--- sets gone members
local members = { '-inf', '\3' .. bytes('>I7I7I8I7I2I5I5I7I7', expires, at, level, begun, halvings, rest, base, start, window) }
local gone = {}
--- insert crowd
if used > 0 then
  --- insert rank
  members[3], members[4] = format('%.12f', rank), tenant
else
  gone[1] = tenant
end
call('ZADD', key, unpack(members)) -- first, since a server without memory refuses it
--- insert clean
--- store (run)
--- reads arg at base begun expires extends format gone halvings last lasts level
--- reads members n place rank rest score scores start tenant top window
--- sets extends gone members numbers redo top
if not members then
  members, gone, extends, redo = { '-inf', '' }, {}, nil, { arg, place - 1, last, n }
end
--- insert crowd
for _, light in ipairs(gone) do
  scores[light] = nil
end
--- insert rank
members[#members + 1], members[#members + 2] = format('%.12f', rank), tenant
if score and score == top and rank < top then
  top = nil -- another may be
else
  top = math.max(top or rank, rank)
end
scores[tenant], extends = rank, extends or not lasts
numbers = { expires, at, level, begun, halvings, rest, base, start, window }
--- crowd
--- reads call format key score top
--- sets gone
if top and not score then
  local full = call('ZCOUNT', key, '-1000000000000', '+inf') >= 100000
  gone = call('ZRANGEBYSCORE', key, '-1000000000000', full and '+inf' or format('%.12f', top - 14),
    'LIMIT', '0', full and '1' or '8')
end
--- clean
--- reads call expires gone key lasts lifetime lost members state
if state ~= members[2] then
  gone[#gone + 1] = state
end
if lost then
  call('UNLINK', key)
  call('ZADD', key, unpack(members))
elseif gone[1] then
  call('ZREM', key, unpack(gone))
end
if not lasts then
  call('PEXPIRE', key, lifetime(expires))
end
--- parted (run)
--- reads apart place scores tenants top
if apart or not top or not scores[ARGV[tenants + place]] then
  break
end
--- scatter (run)
--- reads apart arg bytes extends last members numbers of_key place redo replies scores
--- reads tenants top used
--- sets apart arg last lost members n of_key place state
-- The changes are written before a call of another key, of other terms, or of a new tenant.
if of_key then
  local same = KEYS[place] == of_key and ARGV[place > last and arg + 4 or arg] + 0 == used and top
  if members and (apart or not same or not scores[ARGV[tenants + place]]) then
    local key, lasts, expires = of_key, not extends, numbers[1]
    members[2] = '\3' .. bytes('>I7I7I8I7I2I5I5I7I7', unpack(numbers))
    local answer = redis.pcall('ZADD', key, unpack(members))
    if type(answer) == 'table' then
      arg, place, last, n = unpack(redo)
      for j = #replies, n + 1, -1 do
        replies[j] = nil
      end
      if apart then
        place = place + 1
        error(answer.err, 0)
      end
      apart, same = true, nil
    else
      --- insert clean
      state, lost = members[2], nil
    end
    members = nil
  end
  of_key = same and of_key
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
-- From -2^53 on, for miniredis takes '(-inf' for '-inf', the score of the state.
local latest = call('ZRANGEBYSCORE', key, '-9007199254740992', '-1000000000000', 'WITHSCORES', 'LIMIT', '0', '1')[2]
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
