package runtime

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/batch"
	"github.com/rategen/rategen/runtime/internal/breaker"
	"github.com/rategen/rategen/runtime/internal/script"
)

// An ErrorClass is one word for the reason that a store did not decide: a label
// for metrics and alerts. See [ClassOf].
type ErrorClass uint8

const (
	// ClassOther is every error that no other class is for.
	ClassOther ErrorClass = iota
	// ClassTimeout: no answer arrived in time, see [WithTimeout]. A client with
	// its default options may still be dialing then, or waiting for a connection
	// of its pool.
	ClassTimeout
	// ClassDial: no connection could be made, or the server accepts no more.
	ClassDial
	// ClassPool: all connections of the client's pool were in use.
	ClassPool
	// ClassConnection: a connection broke while a call was under way.
	ClassConnection
	// ClassClosed: the client is closed.
	ClassClosed
	// ClassBreakerOpen: the store was not asked, since its circuit breaker is
	// open.
	ClassBreakerOpen
	// ClassCrowded: the store was not asked, since too many calls wait for it.
	ClassCrowded
	// ClassOOM: Redis is at its maxmemory and may evict nothing.
	ClassOOM
	// ClassBusy: Redis is busy with a script of another program.
	ClassBusy
	// ClassLoading: Redis is loading its data set after a start.
	ClassLoading
	// ClassReadOnly: the server is a replica, or may not write as things are.
	ClassReadOnly
	// ClassAuth: the client's user or password is wrong, or the user may not
	// run scripts, call a command that they call, or touch the key.
	ClassAuth
	// ClassWrongType: something else is stored under the key.
	ClassWrongType
	// ClassScript: the script failed, or its reply is not understood.
	ClassScript
	// ClassNoScript: the server does not know the script and would not learn
	// it, or it knows no scripts at all.
	ClassNoScript
	// ClassClusterDown: the cluster does not serve the key's slot.
	ClassClusterDown
	// ClassTryAgain: keys of one call are on two nodes, since their slot moves.
	ClassTryAgain
	// ClassMasterDown: the server is a replica that has lost its master.
	ClassMasterDown
	// ClassMoved: nodes send the client to each other for a slot.
	ClassMoved
	// ClassKey: the key could not be built, see [ErrInvalidKey].
	ClassKey
	// ClassSharded: the server is a proxy that shards keys, so that limits would
	// not hold. The store decides nothing then.
	ClassSharded
	// ClassUnfit: the server cannot count. It is a build of 32 bits, whose scripts cut
	// the numbers that limits keep, or it forbids scripts the keys that they name.
	ClassUnfit

	classes = iota
)

var classNames = [classes]string{
	"other", "timeout", "dial", "pool", "connection", "closed", "breaker_open", "crowded",
	"oom", "busy", "loading", "readonly", "auth", "wrongtype", "script", "noscript",
	"clusterdown", "tryagain", "masterdown", "moved", "key", "sharded", "unfit",
}

// String returns the class in lower case, "timeout" for instance.
func (c ErrorClass) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "other"
}

// ClassOf returns the class of an error of a [RedisStore] or of a [Limiter] on
// one, such as [ErrUnavailable]. It is for errors of calls that were not decided:
// a denial is ClassOther, and so is nil.
func ClassOf(err error) ErrorClass {
	switch err {
	case nil:
		return ClassOther
	case breaker.ErrOpen:
		return ClassBreakerOpen
	}
	var reply redis.Error
	if errors.As(err, &reply) {
		return classOfReply(reply)
	}
	var dial *net.OpError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, breaker.ErrOpen):
		return ClassBreakerOpen
	case errors.Is(err, errSharded):
		return ClassSharded
	case errors.Is(err, batch.ErrCrowded):
		return ClassCrowded
	case errors.Is(err, ErrInvalidKey):
		return ClassKey
	case errors.Is(err, script.ErrReply):
		return ClassScript
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return ClassPool
	case errors.Is(err, redis.ErrClosed):
		return ClassClosed
	case errors.As(err, &dial) && dial.Op == "dial":
		return ClassDial
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return ClassTimeout
	case brokeOff(err):
		return ClassConnection
	}
	return ClassOther
}

// brokeOff reports whether err is that of a connection which ended.
func brokeOff(err error) bool {
	var broken *net.OpError
	var call *os.SyscallError // what go-redis leaves of that for a new connection
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.As(err, &broken) || errors.As(err, &call)
}

// replyClasses are the first words of the errors that Redis replies.
var replyClasses = map[string]ErrorClass{
	"OOM": ClassOOM, "BUSY": ClassBusy, "LOADING": ClassLoading,
	"READONLY": ClassReadOnly, "MISCONF": ClassReadOnly, "NOREPLICAS": ClassReadOnly,
	"NOAUTH": ClassAuth, "WRONGPASS": ClassAuth, "NOPERM": ClassAuth,
	"WRONGTYPE": ClassWrongType, "NOSCRIPT": ClassNoScript, "UNFIT": ClassUnfit,
	"CLUSTERDOWN": ClassClusterDown, "TRYAGAIN": ClassTryAgain, "MASTERDOWN": ClassMasterDown,
	"MOVED": ClassMoved, "ASK": ClassMoved,
}

// place is where in a script an error was raised, as Redis before 7.0 says it, in
// front of what the error was.
var place = regexp.MustCompile(`^(Error running script \(call to \w+\): )?(@user_script: ?\d+: )*-?`)

// classOfReply returns the class of an error that Redis replied. A command that
// the user may not call is told of with NOPERM, and in a script with other words:
// one sentence before Redis 7.2, another from then on and in Valkey.
func classOfReply(err redis.Error) ErrorClass {
	text := strings.TrimPrefix(err.Error(), "ERR ")
	cause := strings.TrimPrefix(text[len(place.FindString(text)):], "ERR ")
	word, _, _ := strings.Cut(cause, " ")
	switch class, ok := replyClasses[word]; {
	case ok:
		return class
	case strings.Contains(cause, "unauthenticated"): // too long a command without a password
		return ClassAuth
	case strings.HasPrefix(cause, "The user executing the script can't"),
		strings.HasPrefix(cause, "ACL failure in script"):
		return ClassAuth
	case strings.HasPrefix(cause, "max number of clients"):
		return ClassDial
	case script.Undeclared(err):
		return ClassUnfit
	case script.Unscripted(err):
		return ClassNoScript
	case strings.HasPrefix(text, "Error running script"), strings.HasPrefix(text, "Error compiling script"),
		strings.Contains(text, "user_script"), strings.Contains(text, "command called from"):
		return ClassScript
	case strings.HasPrefix(cause, "unknown command"): // renamed, or not there
		return ClassNoScript
	}
	return ClassOther
}
