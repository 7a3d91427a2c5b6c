package runtime

import (
	"errors"

	"github.com/rategen/rategen/runtime/internal/failure"
)

// An ErrorClass is one word for the reason that a store did not decide: a label
// for metrics and alerts. See [ClassOf].
type ErrorClass uint8

const (
	// ClassOther is every error that no other class is for.
	ClassOther = ErrorClass(failure.Other)
	// ClassTimeout: no answer arrived in time, see [WithTimeout]. A client with
	// its default options may still be dialing then, or waiting for a connection
	// of its pool.
	ClassTimeout = ErrorClass(failure.Timeout)
	// ClassDial: no connection could be made, or the server accepts no more.
	ClassDial = ErrorClass(failure.Dial)
	// ClassPool: all connections of the client's pool were in use.
	ClassPool = ErrorClass(failure.Pool)
	// ClassConnection: a connection broke while a call was under way.
	ClassConnection = ErrorClass(failure.Connection)
	// ClassClosed: the client is closed.
	ClassClosed = ErrorClass(failure.Closed)
	// ClassBreakerOpen: the store was not asked, since its circuit breaker is
	// open.
	ClassBreakerOpen = ErrorClass(failure.BreakerOpen)
	// ClassCrowded: the store was not asked, since too many calls wait for it.
	ClassCrowded = ErrorClass(failure.Crowded)
	// ClassOOM: Redis is at its maxmemory and may evict nothing.
	ClassOOM = ErrorClass(failure.OOM)
	// ClassBusy: Redis is busy with a script of another program.
	ClassBusy = ErrorClass(failure.Busy)
	// ClassLoading: Redis is loading its data set after a start.
	ClassLoading = ErrorClass(failure.Loading)
	// ClassReadOnly: the server is a replica, or may not write as things are.
	ClassReadOnly = ErrorClass(failure.ReadOnly)
	// ClassAuth: the client's user or password is wrong, or the user may not
	// run scripts, call a command that they call, or touch the key.
	ClassAuth = ErrorClass(failure.Auth)
	// ClassWrongType: something else is stored under the key.
	ClassWrongType = ErrorClass(failure.WrongType)
	// ClassScript: the script failed, or its reply is not understood.
	ClassScript = ErrorClass(failure.Script)
	// ClassNoScript: the server does not know the script and would not learn
	// it, or it knows no scripts at all.
	ClassNoScript = ErrorClass(failure.NoScript)
	// ClassClusterDown: the cluster does not serve the key's slot.
	ClassClusterDown = ErrorClass(failure.ClusterDown)
	// ClassTryAgain: keys of one call are on two nodes, since their slot moves.
	ClassTryAgain = ErrorClass(failure.TryAgain)
	// ClassMasterDown: the server is a replica that has lost its master.
	ClassMasterDown = ErrorClass(failure.MasterDown)
	// ClassMoved: nodes send the client to each other for a slot.
	ClassMoved = ErrorClass(failure.Moved)
	// ClassKey: the key could not be built, see [ErrInvalidKey].
	ClassKey = ErrorClass(failure.Key)
	// ClassSharded: the server is a proxy that shards keys, so that limits would
	// not hold. The store decides nothing then.
	ClassSharded = ErrorClass(failure.Sharded)
	// ClassUnfit: the server cannot count. It is a build of 32 bits, whose scripts cut
	// the numbers that limits keep, or it forbids scripts the keys that they name.
	ClassUnfit = ErrorClass(failure.Unfit)
)

// String returns the class in lower case, "timeout" for instance.
func (c ErrorClass) String() string { return failure.Class(c).String() }

// ClassOf returns the class of an error of a [RedisStore] or of a [Limiter] on
// one, such as [ErrUnavailable]. It is for errors of calls that were not decided:
// a denial is ClassOther, and so is nil.
func ClassOf(err error) ErrorClass {
	class := ErrorClass(failure.ClassOf(err))
	if class == ClassOther && errors.Is(err, ErrInvalidKey) {
		return ClassKey
	}
	return class
}
