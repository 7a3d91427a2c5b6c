package operate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A Failure says that what was asked for is wrong, or that there is no such thing.
type Failure struct {
	Nothing bool // there is no such thing
	text    string
}

func (f Failure) Error() string { return f.text }

// Wrongf returns a [Failure] of what was asked for.
func Wrongf(format string, args ...any) error { return Failure{false, fmt.Sprintf(format, args...)} }

// Nothingf returns a [Failure] that says what there is not.
func Nothingf(format string, args ...any) error { return Failure{true, fmt.Sprintf(format, args...)} }

// InFull returns an error with what package runtime keeps out of texts, callers' keys and servers'
// addresses, which are the operator's own.
func InFull(err error) error {
	for {
		brief, is := errors.AsType[interface {
			error
			Full() error
		}](err)
		if !is || brief.Full() == nil {
			return err
		}
		err = fullError{brief.Full(), strings.Replace(err.Error(), brief.Error(), brief.Full().Error(), 1)}
	}
}

// A fullError is an error as it is told in full, with what stands around it.
type fullError struct {
	error
	text string
}

func (f fullError) Error() string { return f.text }
func (f fullError) Unwrap() error { return f.error }

// Replied reports whether an error is one that Redis has replied, and begins with a word.
func Replied(err error, word string) bool {
	reply, is := errors.AsType[redis.Error](err)
	return is && strings.HasPrefix(reply.Error(), word)
}

// writeRemedies are what helps if Redis refuses all writes, by how the reply begins.
var writeRemedies = []struct{ reply, remedy string }{
	{"READONLY", "it is a replica: name its master with -redis, or the Sentinels with -sentinel"},
	{"OOM", "it is full, and evicts nothing or not enough: raise maxmemory, or remove what others keep there; ratectl memory shows what limits take, and ratectl reset frees what one caller takes"},
	{"MISCONF", "it cannot save a snapshot: see its log and its disk, or set stop-writes-on-bgsave-error no"},
	{"NOREPLICAS", "too few replicas follow it: bring them back, or set min-replicas-to-write lower"},
	{"LOADING", "it is still loading its data: wait until that is done"},
	{"MASTERDOWN", "it is a replica whose master is away: see whether that runs"},
	{"CLUSTERDOWN", "slots of the cluster have no master: see CLUSTER NODES"},
}

// RefusesWrites returns what helps if Redis refuses all writes by this error, or else nothing.
func RefusesWrites(err error) string {
	for _, w := range writeRemedies {
		if err != nil && (Replied(err, w.reply) || strings.Contains(err.Error(), " -"+w.reply+" ")) { // the reply of a script
			return w.remedy
		}
	}
	return ""
}
