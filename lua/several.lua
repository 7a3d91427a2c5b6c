-- What take.lua is made of besides, for what no loop over keys decides: calls
-- with several limits, and what peeks.
--
-- several stands before take.lua decides anything.
--- several
--- reads arg key place replies shadow terms
--- sets act arg cost decide_call each finish heal look looks operation peek peek_all
--- sets place reply take_all tell use wait_all
local operation, looks = ARGV[1], {}
--- insert blocked

--- insert functions
local function use(which)
  --- insert terms
end

local function heal(key, reset)
  --- insert heal
end

local function reply(allowed, room, retry, reset, at, delay, mark)
  local n = #replies
  if mark and mark > 0 then
    delay = delay or 0 -- the long form
  end
  --- insert reply
  if mark and mark > 0 then
    replies[n - 1], replies[n + 1] = -at, mark
  end
end

local function look(limit)
  --- insert looked
end

local function peek(limit)
  --- insert peeked
  --- insert keep former
end

local function finish(limit, admitted)
  --- insert spared
  if admitted and not limit.retry and not limit.waits then
    limit.reset, limit.at, limit.delay, limit.mark, limit.more = limit.charge()
    limit.room = limit.room - limit.cost
  else
    --- insert refused
    heal(limit.key, limit.reset)
    if limit.place and limit.retry then
      limit.delay = limit.place()
    end
  end
end

-- Does a step for each limit of a call. A failure of one in shadow mode is its own, as
-- long as there are others.
local function each(limits, step, admitted)
  for _, limit in ipairs(limits) do
    use(limit.terms)
    --- insert limit claim
    limit.shadow = shadow
    if not shadow or not limits[2] then
      step(limit, admitted)
    elseif not limit.err then
      local ok, err = pcall(step, limit, admitted)
      limit.err = not ok and err
    end
  end
end

local function tell(limits)
  for _, limit in ipairs(limits) do
    if limit.err then
      local err, failed, n = limit.err, -4, #replies
      --- insert cause
      --- insert fail
    else
      --- insert told
      reply(limit.retry and 0 or 1, limit.room, limit.retry or limit.more, limit.reset, limit.at, limit.delay or limit.retry and limit.turn, limit.mark)
      --- insert tell former
    end
  end
end

-- A call that has to wait for its turn in a queue is charged to the other limits then. They refuse
-- it now only if they would at its turn, if nobody else came; permits may be back by then.
local function wait_all(limits)
  local turn = 0
  for _, limit in ipairs(limits) do
    if limit.times > 0 and not limit.shadow then
      turn = math.max(turn, limit.turn or 0)
    end
  end
  for _, limit in ipairs(limits) do
    if turn > 0 and limit.times < 1 and not limit.err then
      limit.waits = true
      if limit.times < 0 or limit.retry and limit.retry <= turn then
        limit.retry = nil
      end
    end
  end
end

local function take_all(limits)
  each(limits, look)
  local admitted = true
  if limits.wait then
    wait_all(limits)
  end
  for _, limit in ipairs(limits) do
    admitted = admitted and (limit.shadow or not limit.retry)
  end
  each(limits, finish, admitted)
  tell(limits)
end

local function peek_all(limits)
  each(limits, peek)
  tell(limits)
end

local act = operation == 'take' and take_all or peek_all

-- Decides the next call, with all its limits.
local function decide_call()
  local limits, which = {}, nil
  repeat
    arg = arg + 4
    which = ARGV[arg] + 0
    local times = ARGV[arg + 2] + 0
    limits[#limits + 1] = { key = KEYS[place], terms = math.abs(which),
      cost = ARGV[arg + 1] + 0, times = times }
    --- insert keep claim
    limits.wait = limits.wait or times < 1
    place = place + 1
  until which > 0
  act(limits)
end
--- functions
--- reads looks
looks.ALGORITHM = function(key, cost)
  local charging, room, retry, reset, at, delay = false, nil, nil, nil, nil, nil
  --- insert ends
  --- insert share
  --- insert look
  --- insert recall
  --- insert see
  return room, retry, reset, delay, function()
    --- insert lift
    --- insert charge
    --- insert keep
    --- insert outcome
  end
  --- insert begins
end
--- outcome
--- reads at delay reset retry
return reset, at, delay, nil, retry
--- looked
--- reads algorithm limit looks
--- sets none
local none
limit.room, limit.retry, limit.reset, limit.turn, limit.charge, none, none, limit.place = looks[algorithm](limit.key, limit.cost)
--- peeked
--- reads algorithm limit looks
limit.room, limit.retry, limit.reset, limit.turn = looks[algorithm](limit.key, limit.cost)
--- together
--- reads arg decide_call operation replies
--- sets n
while arg + 4 < LAST and (operation ~= 'take' or ARGV[arg + 4] + 0 < 0) do
  decide_call()
  n = #replies
end
