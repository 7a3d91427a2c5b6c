package decide

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

// A Class says in one word why a store did not decide. Package observe says what each means, and has its
// word. [ClassOther] is that of what nothing else fits.
type Class = observe.ErrorClass

const (
	ClassOther Class = iota
	ClassTimeout
	ClassDial
	ClassPool
	ClassConnection
	ClassClosed
	ClassBreakerOpen
	ClassCrowded
	ClassOOM
	ClassBusy
	ClassLoading
	ClassReadOnly
	ClassAuth
	ClassWrongType
	ClassScript
	ClassNoScript
	ClassClusterDown
	ClassTryAgain
	ClassMasterDown
	ClassMoved
	ClassKey
	ClassSharded
	ClassUnfit
	Classes // how many there are
)

// ClassOf returns the class of an error.
func ClassOf(err error) Class {
	switch err {
	case nil:
		return ClassOther
	case redisengine.ErrOpen:
		return ClassBreakerOpen
	}
	var reply rediswire.ReplyError
	if errors.As(err, &reply) {
		return classOfReply(reply)
	}
	var dial *net.OpError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, redisengine.ErrOpen):
		return ClassBreakerOpen
	case errors.Is(err, server.ErrSharded):
		return ClassSharded
	case errors.Is(err, redisengine.ErrCrowded):
		return ClassCrowded
	case errors.Is(err, script.ErrReply):
		return ClassScript
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return ClassPool
	case errors.Is(err, redis.ErrClosed), errors.Is(err, rediswire.ErrClosed):
		return ClassClosed
	case errors.As(err, &dial) && dial.Op == "dial", errors.Is(err, rediswire.ErrNotSent), distrusted(err):
		return ClassDial
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return ClassTimeout
	case brokeOff(err):
		return ClassConnection
	case errors.Is(err, keytext.ErrInvalid):
		return ClassKey
	}
	return ClassOther
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
func classOfReply(err rediswire.ReplyError) Class {
	text := strings.TrimPrefix(err.Error(), "ERR ")
	cause := strings.TrimPrefix(text[len(place.FindString(text)):], "ERR ")
	word, _, _ := strings.Cut(cause, " ")
	class, ok := replyClasses[word]
	switch {
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
	case script.Unscripted(err), script.Lacks(err):
		return ClassNoScript
	case strings.HasPrefix(text, "Error running script"), strings.HasPrefix(text, "Error compiling script"),
		strings.Contains(text, "user_script"):
		return ClassScript
	case strings.HasPrefix(cause, "unknown command"): // renamed, or not there
		return ClassNoScript
	}
	return ClassOther
}
