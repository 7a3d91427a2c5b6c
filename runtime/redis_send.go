package runtime

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// send has a client execute the scripts of stops, each at most once, and takes
// down what came of it. Scripts in different slots are sent as a pipeline.
func (s *RedisStore) send(ctx context.Context, client redis.UniversalClient, stops []*stop) {
	for _, stop := range stops {
		script, args := s.library.script(stop.wire.set), stop.wire.args
		args[0], args[1] = "evalsha", &script.hash
		if stop.text {
			args[0], args[1] = "eval", &script.text
		}
		stop.cmd = *redis.NewIntSliceCmd(ctx, args...)
	}
	panicked := s.guard(func() error {
		if len(stops) == 1 {
			_ = client.Process(ctx, command{&stops[0].cmd})
			return nil
		}
		pipeline := client.Pipeline()
		for _, stop := range stops {
			_ = pipeline.Process(ctx, command{&stop.cmd})
		}
		_, _ = pipeline.Exec(ctx)
		return nil
	})
	for _, stop := range stops {
		reply, err := stop.cmd.Result()
		switch {
		case panicked != nil:
			err = panicked
		case contextual(err) && ctx.Err() != nil:
			err = ended(ctx)
		}
		stop.settle(reply, err)
	}
}

var errPanicked = errors.New("the redis client panicked, in one of its hooks perhaps")

// guard makes an error of a panic in do, which uses the client. The client may
// have hooks of the program's, and callers who share a trip are not to share its
// panic, nor to wait for a pilot that is no more.
func (s *RedisStore) guard(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			if e := s.events.Load(); e != nil {
				e.panicked("redis client", value)
			}
			err = errPanicked
		}
	}()
	return do()
}

// refused reports whether err proves that no server has executed the script,
// for a reason that passes or that there is a way around. Only the client of
// all servers can follow a slot that has moved, and tell when there is none.
func refused(err error, all bool) bool {
	switch {
	case err == nil:
		return false
	case notExecuted(err), notSent(err), unknown(err):
		return true
	}
	return !all && (moved(err) || errors.Is(err, redis.ErrClosed))
}

// moved reports whether the key is on another server of a cluster.
func moved(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")
}

// forbidden reports whether the server has not executed the script because its
// user may not touch one of the keys. What it says of that differs between
// versions; what it says of a command that the user may not run has no key.
func forbidden(err error) bool {
	return err != nil && redis.HasErrorPrefix(err, "NOPERM") &&
		(strings.Contains(err.Error(), " a key") || strings.Contains(err.Error(), " the keys"))
}

// unknown reports whether the server does not have the script.
func unknown(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }
