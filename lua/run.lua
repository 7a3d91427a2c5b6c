-- Goes through the arguments of take.lua.
local arg = 3 + ARGV[2] * 6
while arg <= #ARGV do
  local which, act, what, times, last = ARGV[arg] + 0, take, nil, nil, nil
  local alone = which > 0 and operation == 'take'
  if alone then
    use(which)
    what, times, last = ARGV[arg + 1] + 0, ARGV[arg + 2] + 0, key + ARGV[arg + 3] - 1
    arg = arg + 4
  else
    local limits = {}
    act, what = several[operation], limits
    repeat
      which = ARGV[arg] + 0
      limits[#limits + 1] = { key = KEYS[key], terms = math.abs(which),
        cost = ARGV[arg + 1] + 0, times = ARGV[arg + 2] + 0 }
      key, arg = key + 1, arg + 4
    until which > 0
  end
  repeat
    local ok, err = pcall(act, what, times, last)
    -- A call's failure, a key of a foreign type say, is not another's: the next
    -- is decided as if it had not been there.
    if not ok then
      -- From Redis 7.0 on a raised error is a table, and before a text that may
      -- begin with a place in the script.
      if type(err) == 'table' then
        err = err.err
      end
      err = string.match(err, '(%u%u+ .*)$') or 'ERR ' .. err
      -- But a demoted master has written nothing for any call, and the client
      -- must learn that it talks to the wrong server.
      if string.match(err, '^%-?READONLY') then
        return redis.error_reply(err)
      end
      local bytes = { string.byte(err, 1, math.min(#err, 200)) }
      replies[replied + 1], replies[replied + 2] = -1, #bytes
      for i = 1, #bytes do
        replies[replied + 2 + i] = bytes[i]
      end
      replied = replied + 2 + #bytes
    end
  until ok or not alone
end
return replies
