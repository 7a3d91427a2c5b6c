-- Processes report here what they have in force. Each report is written to one of two hashes,
-- which take turns. A hash expires when its next turn begins, so the report of a process that
-- has ended is gone after two turns at the latest.
--
-- KEYS    both hashes, in one slot
-- ARGV    how long a turn is, in seconds; the process; its report, or "" if it ends
-- reply   0
-- state   field process: its report
-- cost    O(1)
if ARGV[3] == '' then
  for _, hash in ipairs(KEYS) do
    redis.call('HDEL', hash, ARGV[2])
  end
  return 0
end
local now, turn = tonumber(redis.call('TIME')[1]), tonumber(ARGV[1])
local begun = now - now % turn
local hash = KEYS[1 + begun / turn % 2]
local begins = redis.call('PTTL', hash) < 0
redis.call('HSET', hash, ARGV[2], ARGV[3])
if begins then
  redis.call('PEXPIRE', hash, (begun + 2 * turn - now) * 1000)
end
return 0
