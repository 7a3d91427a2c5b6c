// Package failure says in one word why a store did not decide.
//
// It is handed the errors of clients, of servers and of the engine, and promises a class
// for each, [Other] if nothing fits. It never says what becomes of a call.
package failure

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/keytext"
	redisengine "github.com/rategen/rategen/runtime/internal/redis"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/server"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rediswire"
)

// A Class is one reason. Package observe says what each means, and has its word.
type Class = observe.ErrorClass

const (
	Other Class = iota
	Timeout
	Dial
	Pool
	Connection
	Closed
	BreakerOpen
	Crowded
	OOM
	Busy
	Loading
	ReadOnly
	Auth
	WrongType
	Script
	NoScript
	ClusterDown
	TryAgain
	MasterDown
	Moved
	Key
	Sharded
	Unfit
	Classes // how many there are
)

// ClassOf returns the class of an error.
func ClassOf(err error) Class {
	switch err {
	case nil:
		return Other
	case redisengine.ErrOpen:
		return BreakerOpen
	}
	var reply rediswire.ReplyError
	if errors.As(err, &reply) {
		return classOfReply(reply)
	}
	var dial *net.OpError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, redisengine.ErrOpen):
		return BreakerOpen
	case errors.Is(err, server.ErrSharded):
		return Sharded
	case errors.Is(err, redisengine.ErrCrowded):
		return Crowded
	case errors.Is(err, script.ErrReply):
		return Script
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return Pool
	case errors.Is(err, redis.ErrClosed), errors.Is(err, rediswire.ErrClosed):
		return Closed
	case errors.As(err, &dial) && dial.Op == "dial", errors.Is(err, rediswire.ErrNotSent), distrusted(err):
		return Dial
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	case brokeOff(err):
		return Connection
	case errors.Is(err, keytext.ErrInvalid):
		return Key
	}
	return Other
}

// distrusted reports whether err is that of a server which could not show by TLS that it
// is the one meant.
func distrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError // it speaks something else
	return errors.As(err, &certificate) || errors.As(err, &record)
}

// brokeOff reports whether err is that of a connection which ended.
func brokeOff(err error) bool {
	var broken *net.OpError
	var call *os.SyscallError // what go-redis leaves of that for a new connection
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.As(err, &broken) || errors.As(err, &call)
}

// replyClasses are the first words of the errors that Redis replies.
var replyClasses = map[string]Class{
	"OOM": OOM, "BUSY": Busy, "LOADING": Loading,
	"READONLY": ReadOnly, "MISCONF": ReadOnly, "NOREPLICAS": ReadOnly,
	"NOAUTH": Auth, "WRONGPASS": Auth, "NOPERM": Auth,
	"WRONGTYPE": WrongType, "NOSCRIPT": NoScript, "UNFIT": Unfit,
	"CLUSTERDOWN": ClusterDown, "TRYAGAIN": TryAgain, "MASTERDOWN": MasterDown,
	"MOVED": Moved, "ASK": Moved,
}

// place is where in a script an error was raised, as Redis before 7.0 says it, in
// front of what the error was.
var place = regexp.MustCompile(`^(Error running script \(call to \w+\): )?(@user_script: ?\d+: )*-?`)

// classOfReply returns the class of an error that Redis replied. A command that
// the user may not call is told of with NOPERM, and in a script with other words:
// one sentence before Redis 7.2, another from then on and in Valkey.
func classOfReply(err rediswire.ReplyError) Class {
	text := strings.TrimPrefix(err.Error(), "ERR ")
	cause := strings.TrimPrefix(text[len(place.FindString(text)):], "ERR ")
	word, _, _ := strings.Cut(cause, " ")
	class, ok := replyClasses[word]
	switch {
	case ok:
		return class
	case strings.Contains(cause, "unauthenticated"): // too long a command without a password
		return Auth
	case strings.HasPrefix(cause, "The user executing the script can't"),
		strings.HasPrefix(cause, "ACL failure in script"):
		return Auth
	case strings.HasPrefix(cause, "max number of clients"):
		return Dial
	case script.Undeclared(err):
		return Unfit
	case script.Unscripted(err), script.Lacks(err):
		return NoScript
	case strings.HasPrefix(text, "Error running script"), strings.HasPrefix(text, "Error compiling script"),
		strings.Contains(text, "user_script"):
		return Script
	case strings.HasPrefix(cause, "unknown command"): // renamed, or not there
		return NoScript
	}
	return Other
}
