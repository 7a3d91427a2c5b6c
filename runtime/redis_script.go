package runtime

import (
	"errors"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/lua"
)

// A script is the text of a Lua script and the hash that Redis knows it by.
type script struct{ text, hash string }

func newScript(text string) *script {
	return &script{text, redis.NewScript(text).Hash()}
}

// A library holds the scripts for sets, see lua.Take, each made when it is
// first needed. The zero library makes them of package lua.
type library struct {
	scripts [2 * lua.Several]atomic.Pointer[script]
	change  func(string) string // for tests
}

// script returns the script for a set, see lua.Take.
func (l *library) script(set uint) *script {
	if s := l.scripts[set].Load(); s != nil {
		return s
	}
	text := lua.Take(set)
	if l.change != nil {
		text = l.change(text)
	}
	s := newScript(text)
	l.scripts[set].Store(s)
	return s
}

// A command is a Redis command that go-redis runs at most once: it retries
// timeouts by default, and a script that ran before the reply was lost would
// charge twice.
type command struct{ *redis.IntSliceCmd }

// NoRetry overrides the method of redis.IntSliceCmd.
func (command) NoRetry() bool { return true }

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

// notSent reports whether err proves that the script did not leave the process,
// for lack of a connection.
func notSent(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial" ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted)
}
