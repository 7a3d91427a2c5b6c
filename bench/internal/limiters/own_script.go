package limiters

import (
	"context"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/runtime"
)

// byHand is the name of what a way's scripts are called that go-redis sends, a trip each.
func (w way) byHand() string {
	scripts := "EVALSHA"
	if w.rule.Algorithm == runtime.Concurrency {
		scripts = "two EVALSHA"
	}
	return scripts + " of rategen " + w.name
}

// ByHand returns what sends the scripts that rategen's limiters send for one call, as a user of
// go-redis would: so the difference to the limiter is what its batches cost or save. One of the
// scripts is also sent by rueidis, and by a socket without any client.
func ByHand() []Limiter {
	var all []Limiter
	for _, w := range ways {
		add := func(over string, take func(Server, *lastScripts) (load.Take, error)) {
			all = append(all, Limiter{Name: w.byHand() + over, Floor: true, New: func(s Server, limits Limits) (load.Take, error) {
				sent, err := w.scripts(s, limits)
				if err != nil {
					return nil, err
				}
				return take(s, sent)
			}})
		}
		add("", w.overGoRedis)
		if w.rule.Algorithm == runtime.FixedWindow {
			add(" over rueidis", w.overRueidis)
			add(" over a socket", w.overSocket)
		}
	}
	return all
}

func (w way) overGoRedis(s Server, sent *lastScripts) (load.Take, error) {
	send := func(ctx context.Context, script []string, key string) *redis.Cmd {
		return s.Client.EvalSha(ctx, script[1], []string{w.name + ":" + key}, script[4:])
	}
	if w.rule.Algorithm != runtime.Concurrency {
		return func(ctx context.Context, key string) load.Answer {
			return answerOf(true, send(ctx, sent.take, key).Err())
		}, nil
	}
	at := slices.Index(sent.settle, fmt.Sprint(sent.charged))
	if at < 4 {
		return nil, fmt.Errorf("%s gives back by %q, which does not have the time %d", w.name, sent.settle, sent.charged)
	}
	return func(ctx context.Context, key string) load.Answer {
		reply, err := send(ctx, sent.take, key).Int64Slice()
		if err != nil {
			return load.Failed
		}
		settle := slices.Clone(sent.settle)
		settle[at] = strconv.FormatInt(chargedAt(reply), 10)
		return answerOf(true, send(ctx, settle, key).Err())
	}, nil
}

// overRueidis sends the script by a client that has concurrent commands share trips.
func (w way) overRueidis(s Server, sent *lastScripts) (load.Take, error) {
	return func(ctx context.Context, key string) load.Answer {
		command := s.Rueidis.B().Evalsha().Sha1(sent.take[1]).Numkeys(1).Key(w.name + ":" + key).Arg(sent.take[4:]...).Build()
		return answerOf(true, s.Rueidis.Do(ctx, command).Error())
	}, nil
}

// overSocket sends the script by connections that callers share, a trip each, and does nothing else.
func (w way) overSocket(s Server, sent *lastScripts) (load.Take, error) {
	return newSockets(s, sent.take, w.name+":"), nil
}

// scripts returns what a limiter has sent to have a call decided, and given back.
func (w way) scripts(s Server, limits Limits) (*lastScripts, error) {
	ctx := context.Background()
	sent := new(lastScripts)
	client := redis.NewClient(&redis.Options{Network: s.Client.Options().Network, Addr: s.Client.Options().Addr})
	defer client.Close()
	client.AddHook(sent)
	limiter := quiet(runtime.NewRedisStore(client, runtime.WithTimeout(s.Timeout)))
	defer limiter.Close()
	w.rule.Prefix = w.name + ":"
	rule := w.ruleFor(limits)
	// The first call also finds out what the server can do.
	for range 2 {
		*sent = lastScripts{}
		decision, err := limiter.Take(ctx, rule.Limit(runtime.NewKey().AddString("key")))
		if err != nil {
			return nil, fmt.Errorf("%s failed after sending %q: %w", w.name, sent.take, err)
		}
		if rule.Algorithm == runtime.Concurrency {
			if err := limiter.Settle(ctx, decision); err != nil {
				return nil, err
			}
		}
	}
	if len(sent.take) < 4 {
		return nil, fmt.Errorf("%s sends no script for a call, but %q", w.name, sent.take)
	}
	return sent, nil
}

// chargedAt returns the time that a call counts as, by the reply that lua/take.lua documents.
func chargedAt(reply []int64) int64 {
	if len(reply) > 6 {
		return reply[6]
	}
	return reply[0]
}

// A lastScripts is a hook that copies what a client has sent last to have a call taken and settled.
type lastScripts struct {
	take, settle []string
	charged      int64 // when the call was taken
}

func (s *lastScripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		var args []string
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
			args = append(args, fmt.Sprint(reflect.Indirect(reflect.ValueOf(arg))))
		}
		err := next(ctx, cmd)
		if slices.Contains(args, "settle") {
			s.settle = args
			return err
		}
		s.take = args
		if reply, is := cmd.(interface{ Val() []int64 }); is && len(reply.Val()) > 0 {
			s.charged = chargedAt(reply.Val())
		}
		return err
	}
}

func (*lastScripts) DialHook(next redis.DialHook) redis.DialHook {
	return next
}

func (*lastScripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
