package rediswire

import (
	"errors"
	"strings"
)

// A ReplyError is an error that a server has replied. Its text is the server's. It is
// what go-redis calls redis.Error.
type ReplyError interface {
	error
	RedisError()
}

var (
	// ErrClosed is the error of a client that is closed, or has given up a server.
	ErrClosed = errors.New("the redis client is closed")
	// ErrNotSent is the error of what has not left the process, for lack of a connection.
	ErrNotSent = errors.New("no connection to redis")
	// ErrNil is the error of a command whose reply is nil.
	ErrNil error = Reply("redis: nil")
)

// Reply is a [ReplyError] of a text.
type Reply string

func (r Reply) Error() string { return string(r) }

// RedisError implements [ReplyError].
func (Reply) RedisError() {}

// Closed returns err as one that is [ErrClosed] too.
func Closed(err error) error { return &marked{err, ErrClosed} }

// NotSent returns err as one that is [ErrNotSent] too.
func NotSent(err error) error { return &marked{err, ErrNotSent} }

type marked struct{ cause, mark error }

func (m *marked) Error() string        { return m.cause.Error() }
func (m *marked) Unwrap() error        { return m.cause }
func (m *marked) Is(target error) bool { return target == m.mark }

// Replied reports whether err is one that a server has replied, and which begins with a
// text. Some servers put ERR before their own words.
func Replied(err error, text string) bool {
	var reply ReplyError
	return errors.As(err, &reply) && strings.HasPrefix(strings.TrimPrefix(reply.Error(), "ERR "), text)
}
