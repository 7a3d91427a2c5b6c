package limiters

import (
	"context"
	"encoding"
	"fmt"
	"net"
	"reflect"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/runtime"
)

// newOwnScript sends what a fixed window of rategen's sends for one call, as a user of
// go-redis would: so the difference to the fixed window is what its batches cost or save.
func newOwnScript(s Server, limits Limits) (load.Take, error) {
	ctx := context.Background()
	var sent lastScript
	client := redis.NewClient(&redis.Options{Network: s.Client.Options().Network, Addr: s.Client.Options().Addr})
	defer client.Close()
	client.AddHook(&sent)
	limiter := quiet(runtime.NewRedisStore(client, runtime.WithTimeout(s.Timeout)))
	defer limiter.Close()
	take := ask(limiter, way{name: "fixed-window", rule: runtime.Rule{Algorithm: runtime.FixedWindow, Prefix: "alone:"}}.ruleFor(limits))
	// The first call also finds out what the server can do.
	for range 2 {
		if answer := take(ctx, "key"); answer == load.Failed {
			return nil, fmt.Errorf("a fixed window's call failed after sending %q", sent.args)
		}
	}
	if len(sent.args) < 4 {
		return nil, fmt.Errorf("a fixed window sends no script for a call, but %q", sent.args)
	}
	sha, rest := sent.args[1].(string), sent.args[4:]
	return func(ctx context.Context, key string) load.Answer {
		return answerOf(true, s.Client.EvalSha(ctx, sha, []string{"alone:" + key}, rest...).Err())
	}, nil
}

// A lastScript is a hook that copies what a client has sent last to have a script executed.
type lastScript struct{ args []any }

func (s *lastScript) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		s.args = nil
		for _, arg := range cmd.Args() {
			if m, is := arg.(encoding.BinaryMarshaler); is {
				text, err := m.MarshalBinary()
				if err != nil {
					return err
				}
				arg = text
			}
			if text, is := arg.([]byte); is {
				arg = string(text)
			}
			s.args = append(s.args, fmt.Sprint(reflect.Indirect(reflect.ValueOf(arg))))
		}
		return next(ctx, cmd)
	}
}

func (*lastScript) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (*lastScript) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
