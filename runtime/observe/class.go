package observe

// An ErrorClass is one word for the reason that a store did not decide: a label for metrics and
// alerts, see runtime.ClassOf. There are more classes than those that have a name here, and a version
// may divide one into several.
type ErrorClass uint8

// The classes that programs act upon.
const (
	// ClassOther is every error that no other class is for.
	ClassOther ErrorClass = 0
	// ClassTimeout: no answer arrived in time, see runtime.WithTimeout. A client with its default
	// options may still be dialing then, or waiting for a connection of its pool.
	ClassTimeout ErrorClass = 1
	// ClassDial: no connection could be made, the server accepts no more, or its certificate is
	// not trusted.
	ClassDial ErrorClass = 2
	// ClassConnection: a connection broke while a call was under way.
	ClassConnection ErrorClass = 4
	// ClassBreakerOpen: the store was not asked, since its circuit breaker is open.
	ClassBreakerOpen ErrorClass = 6
	// ClassOOM: Redis is at its maxmemory and may evict nothing.
	ClassOOM ErrorClass = 8
	// ClassReadOnly: the server is a replica, or may not write as things are.
	ClassReadOnly ErrorClass = 11
	// ClassAuth: the client's user or password is wrong, or the user may not run scripts, call
	// a command that they call, or touch the key.
	ClassAuth ErrorClass = 12
	// ClassWrongType: something else is stored under the key.
	ClassWrongType ErrorClass = 13
)

// classes are the words of all classes, in the order of their numbers in package decide.
var classes = [...]string{
	"other", "timeout", "dial", "pool", "connection", "closed", "breaker_open", "crowded",
	"oom", "busy", "loading", "readonly", "auth", "wrongtype", "script", "noscript",
	"clusterdown", "tryagain", "masterdown", "moved", "key", "sharded", "unfit",
}

// String returns the class in lower case, "timeout" for instance.
func (c ErrorClass) String() string {
	if int(c) < len(classes) {
		return classes[c]
	}
	return classes[ClassOther]
}
