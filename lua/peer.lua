-- All processes keep here what a peer has said about a limit of calls that go out: the max that it
-- has set, and until when calls go on evenly after a hold. A lower max holds at once. A higher
-- one comes by a tenth for each window.
--
-- KEYS    the key
-- ARGV    the max that holds until the peer names one; the max that it has named now, or 0;
--         the window, how long a max stays in force that is not named again, and how long calls
--         go on evenly from now on, or 0: in milliseconds
-- reply   the max, or 0; since when it was set or raised and since when it was named, in
--         milliseconds; for how long calls go on evenly
-- state   these four, with times since 1970
-- cost    O(1)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local max, raised, named, paced = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+) (%d+) (%d+)$')
max, raised, named, paced = tonumber(max or 0), tonumber(raised or now), tonumber(named or now), tonumber(paced or 0)
local first, said, window = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local life, evenly = tonumber(ARGV[4]), tonumber(ARGV[5])
if now - named > life then
  max = 0
end
if said > 0 then
  if max == 0 then
    max, raised = first, now
  end
  if said < max then
    max, raised = said, now
  elseif said > max and now - raised >= window then
    max, raised = math.min(said, max + math.max(1, math.floor(max / 10))), now
  end
  named = now
end
if evenly > 0 then
  paced = math.max(paced, now + evenly)
end
if said > 0 or evenly > 0 then
  local ends = paced
  if max > 0 then
    ends = math.max(paced, named + life)
  end
  redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f %.0f', max, raised, named, paced),
    'PX', string.format('%.0f', ends - now))
end
return {max, now - raised, now - named, math.max(0, paced - now)}
