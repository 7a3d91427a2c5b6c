-- Processes report here what they have in force, and whom they have refused. Each report is
-- written to one of two hashes, which take turns. A hash expires when its next turn begins, so the
-- report of a process that has ended is gone after two turns at the latest. Rules are kept once for
-- all processes that have the same. Refusals since the last report of a process are added to those
-- of the present minute. A process that has nothing to report says that it lives, and which calls it had.
--
-- KEYS    both hashes; the refusals; who lives; the rules of the process; calls; all in one slot
-- ARGV    how long a turn is, in seconds; the process; its report, "" if it ends, or "." if it only
--         lives; how long refusals are kept, in seconds; how many callers a minute has at most; the
--         rules, or "" if they should be there; its calls, or "" if it tells none; then for each caller
--         who was refused: the rule, a tab and the key, and a tab and the max if the call brought one,
--         and how often. "" is all others. ! before the rule: it was in shadow mode, and refused nobody
-- reply   1 if the rules are not there, or else 0; the time, as TIME returns it
-- state   field process: its report, or its calls. Of who lives: a member for each process, with the second of its
--         last sign. Of the refusals: a member for each minute, with the minute since 1970 as its
--         score, which is also its first line; then a line for each caller, with a tab before the number
-- cost    O(callers log callers + log minutes + log processes)
local time, turn = redis.call('TIME'), tonumber(ARGV[1])
local now = tonumber(time[1])
local begun = now - now % turn
local hash, lives = KEYS[1 + begun / turn % 2], string.format('%d', 2 * turn * 1000)
local begins = redis.call('PTTL', hash) < 0
local gone = redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', string.format('%d', now - 2 * turn), 'LIMIT', '0', '1000')
local refused, minute, kept = KEYS[3], string.format('%d', (now - now % 60) / 60), tonumber(ARGV[4])
local before, old, after
if #ARGV > 7 then
  before = redis.call('ZRANGEBYSCORE', refused, minute, minute)[1]
  old = redis.call('ZRANGEBYSCORE', refused, '-inf', '(' .. string.format('%d', minute - kept / 60), 'LIMIT', '0', '1000')
  local counts, callers = {}, {}
  local function add(caller, n)
    if not counts[caller] and caller ~= '' then
      callers[#callers + 1] = caller
    end
    counts[caller] = (counts[caller] or 0) + n
  end
  for caller, n in string.gmatch(before or '', '([^\n]*)\t(%d+)\n') do
    add(caller, tonumber(n))
  end
  for i = 8, #ARGV, 2 do
    add(ARGV[i], tonumber(ARGV[i + 1]))
  end
  local most = tonumber(ARGV[5])
  if #callers > most then -- whom each rule refuses most goes before the next ones of any
    local function more(a, b)
      if counts[a] == counts[b] then
        return a < b
      end
      return counts[a] > counts[b]
    end
    table.sort(callers, more)
    local rank, ranks = {}, {}
    for _, caller in ipairs(callers) do
      local rule = string.match(caller, '^[^\t]*')
      local first = string.sub(rule, 1, 1) == '!' and most or 0 -- behind who was refused
      ranks[rule] = (ranks[rule] or first) + 1
      rank[caller] = ranks[rule]
    end
    table.sort(callers, function(a, b)
      if rank[a] == rank[b] then
        return more(a, b)
      end
      return rank[a] < rank[b]
    end)
  end
  local lines = {minute, '\n'}
  for i, caller in ipairs(callers) do
    if i <= most then
      lines[#lines + 1] = string.format('%s\t%.0f\n', caller, counts[caller])
    elseif string.sub(caller, 1, 1) ~= '!' then
      counts[''] = (counts[''] or 0) + counts[caller]
    end
  end
  if counts[''] then
    lines[#lines + 1] = string.format('\t%.0f\n', counts[''])
  end
  after = table.concat(lines)
end
local missing = 0
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[2])
  redis.call('HDEL', KEYS[2], ARGV[2])
  redis.call('HDEL', KEYS[6], ARGV[2])
  redis.call('ZREM', KEYS[4], ARGV[2])
else
  for _, process in ipairs(gone) do
    redis.call('ZREM', KEYS[4], process)
    redis.call('HDEL', KEYS[6], process)
  end
  redis.call('ZADD', KEYS[4], time[1], ARGV[2])
  redis.call('PEXPIRE', KEYS[4], lives)
  if ARGV[7] ~= '' then
    redis.call('HSET', KEYS[6], ARGV[2], ARGV[7])
    redis.call('PEXPIRE', KEYS[6], lives)
  end
end
if ARGV[3] ~= '' and ARGV[3] ~= '.' then
  redis.call('HSET', hash, ARGV[2], ARGV[3])
  if begins then
    redis.call('PEXPIRE', hash, string.format('%d', (begun + 2 * turn - now) * 1000))
  end
  if ARGV[6] ~= '' then
    redis.call('SET', KEYS[5], ARGV[6], 'PX', lives)
  else
    missing = 1 - redis.call('PEXPIRE', KEYS[5], lives)
  end
end
if after then
  for _, member in ipairs(old) do
    redis.call('ZREM', refused, member)
  end
  if before then
    redis.call('ZREM', refused, before)
  end
  redis.call('ZADD', refused, minute, after)
  redis.call('PEXPIRE', refused, string.format('%d', kept * 1000))
end
return {missing, time[1], time[2]}
