package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/rawstore"
)

// A control is a sliding log as one often sees it: the client says what time
// it is. What it replies as the time of a decision is true all the same, so
// that the sweep can judge it.
type control struct {
	client *redis.Client
	now    func() time.Time
}

var controlScript = redis.NewScript(`
local time = redis.call('TIME')
local clock = time[1] * 1000000 + time[2]
local now, replies = tonumber(ARGV[1]), {}
for i = 1, #KEYS do
  local window, max, cost = tonumber(ARGV[i * 3 - 1]), tonumber(ARGV[i * 3]), tonumber(ARGV[i * 3 + 1])
  local key = KEYS[i]
  if key == 'tick' then
    replies[i] = {1, max - redis.call('INCR', key), 0, clock}
  else
    redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now - window))
    local used = redis.call('ZCARD', key)
    if used + cost <= max then
      for _ = 1, cost do
        redis.call('ZADD', key, string.format('%.0f', now), redis.call('INCR', 'member'))
      end
      redis.call('PEXPIRE', key, string.format('%.0f', math.ceil(window / 1000)))
      replies[i] = {1, max - used - cost, 0, clock}
    else
      local oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
      replies[i] = {0, max - used, math.max(1, oldest[2] + window - now), 0}
    end
  end
end
return replies
`)

// Take decides calls of one charge each.
func (c *control) Take(ctx context.Context, calls []rawstore.Call) error {
	keys := make([]string, len(calls))
	args := []any{c.now().UnixMicro()}
	for i := range calls {
		charge := &calls[i].Charges[0]
		keys[i] = string(charge.Key)
		args = append(args, charge.Rule.Window.Microseconds(), charge.Max, charge.Cost)
	}
	replies, err := controlScript.Run(ctx, c.client, keys, args...).Slice()
	if err != nil {
		return err
	}
	for i, reply := range replies {
		var n [4]int64
		fields, ok := reply.([]any)
		if !ok || len(fields) != len(n) {
			return fmt.Errorf("reply %v", reply)
		}
		for j := range n {
			n[j], _ = fields[j].(int64)
		}
		calls[i].Charges[0].Result = rawstore.Result{
			Allowed:    n[0] == 1,
			Remaining:  n[1],
			RetryAfter: time.Duration(n[2]) * time.Microsecond,
			At:         n[3],
		}
	}
	return nil
}
