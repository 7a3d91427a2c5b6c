-- Fixed window that starts with its first event.
--
-- KEY    a STRING, "start count": when the window began, in microseconds and 16
--        digits, and how much of it is used. Before that, if there is a block, "-"
--        and its end in 16 digits.
-- CALLS  look: GET. charge: SET. Calls in a row share an MGET, as of buckets.
--- gather
--- insert strings
--- look
at = clock
--- insert string
local began, start, used = clock_text, clock, 0
if state then
  local from, count = sub(state, 1, 16), sub(state, 17) + 0
  if clock < from + window then
    began, start, used = from, from + 0, count
    at = math.max(clock, start)
    reset = start + window - clock
  end
end
room = max - used
if cost > room then
  retry = reset
end
--- charge
used = used + cost
local count = format(used < 2 ^ 31 and ' %d' or ' %.0f', used)
call('SET', key, began .. count, 'PX', lifetime(start + window))
reset = start + window - clock
--- refund
--- insert string
if state then
  local began, used = sub(state, 1, 16), sub(state, 17) + 0
  local stop = began + window
  if at >= began + 0 and at < stop and clock < stop then
    call('SET', key, began .. format(' %.0f', math.max(0, used - cost)), 'PX', lifetime(stop))
  end
end
--- mark
--- insert string mark
