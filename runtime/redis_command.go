package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/lua"
)

// A command is a Redis command that go-redis runs at most once: it retries
// timeouts by default, and a script that ran before the reply was lost would
// charge twice.
type command struct{ *redis.Cmd }

// NoRetry overrides the method of redis.Cmd.
func (command) NoRetry() bool { return true }

// A script is the text of a Lua script and the hash that Redis knows it by.
type script struct{ text, hash string }

func newScript(text string) script {
	return script{text, redis.NewScript(text).Hash()}
}

var takeScript = newScript(lua.Take)

// replyFields is how many integers take.lua replies for a limit.
const replyFields = 6

// scriptArgs appends the arguments of take.lua after the script itself.
func scriptArgs(args []any, operation string, calls []Call) []any {
	keys := 0
	for i := range calls {
		keys += len(calls[i].Charges)
	}
	args = append(args, keys)
	for i := range calls {
		for j := range calls[i].Charges {
			// A copy: the command may outlive the call that gave up on it.
			args = append(args, string(calls[i].Charges[j].Key))
		}
	}
	args = append(args, operation)
	for i := range calls {
		args = append(args, len(calls[i].Charges))
		for j := range calls[i].Charges {
			args = calls[i].Charges[j].appendArgs(args)
		}
	}
	return args
}

func (c *Charge) appendArgs(args []any) []any {
	r := c.Rule
	var algorithm string
	var param, fine, shadow int64
	wait := int64(-1)
	switch r.Algorithm {
	case SlidingLog:
		algorithm, param = r.Storage.String(), r.Resolution.Microseconds()
	case SlidingCounter:
		algorithm, param, fine = "counter", r.Buckets.width(r.Window), int64(r.Buckets.fine)
		if fine > 0 {
			algorithm = "layered"
		}
	case FixedWindow:
		algorithm = "fixed"
	default:
		algorithm, param = "bucket", r.capacity(c.Max)
		if r.queues() {
			wait = c.Wait.Microseconds()
		}
	}
	if r.Mode == Shadow {
		shadow = 1
	}
	return append(args, algorithm, r.Window.Microseconds(), c.Max, c.Cost, param, fine, wait, shadow, c.At)
}

// run executes take.lua over calls whose keys are in one slot, and returns its
// reply: one element a call. The script is executed at most once.
func (s *RedisStore) run(ctx context.Context, operation string, calls []Call) ([]any, error) {
	for pause := time.Millisecond; ; pause *= 2 {
		replies, err := s.runOnce(ctx, operation, calls)
		if err == nil && len(replies) != len(calls) {
			err = errReply
		}
		if err == nil || !notExecuted(err) {
			return replies, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (s *RedisStore) runOnce(ctx context.Context, operation string, calls []Call) ([]any, error) {
	args := make([]any, 0, 4+16*len(calls))
	cmd := command{redis.NewCmd(ctx, scriptArgs(append(args, "evalsha", s.script.hash), operation, calls)...)}
	err := s.process(ctx, cmd)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		// The server has not executed it, so this is not a second time.
		cmd = command{redis.NewCmd(ctx, scriptArgs(append(args, "eval", s.script.text), operation, calls)...)}
		err = s.process(ctx, cmd)
	}
	if err != nil {
		return nil, err
	}
	return cmd.Slice()
}

// notExecuted reports whether err proves that a server refused to execute the
// script, for a reason that passes by itself: a slot on the move, a node that
// starts, a failover.
func notExecuted(err error) bool {
	for _, prefix := range []string{"TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

var errReply = errors.New("the script's reply is not understood")

// read fills in the results of a call from its part of the reply.
func (c *Call) read(reply any) error {
	if err, ok := reply.(error); ok {
		return err
	}
	numbers, ok := reply.([]any)
	if !ok || len(numbers) != replyFields*len(c.Charges) {
		return errReply
	}
	for i := range c.Charges {
		var n [replyFields]int64
		for j := range n {
			if n[j], ok = numbers[i*replyFields+j].(int64); !ok {
				return errReply
			}
		}
		c.Charges[i].Result = Result{
			Allowed:    n[0] == 1,
			Remaining:  n[1],
			RetryAfter: micros(n[2]),
			ResetAfter: micros(n[3]),
			At:         n[4],
			Delay:      micros(n[5]),
		}
	}
	return nil
}
