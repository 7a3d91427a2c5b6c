package runtime_test

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	goruntime "runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // tests kill servers all the time
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(strconv.Itoa(perProcessor() * goruntime.GOMAXPROCS(0)))
	}
	if checks := flag.Lookup("rapid.checks"); !effort.Full() && checks.Value.String() == checks.DefValue {
		_ = checks.Value.Set("25")
	}
	goleak.VerifyTestMain(m,
		// It dials once a second while a pool's dials fail, and sees only then
		// that its client is closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// quiet keeps the log out of a test's output.
var quiet = runtime.WithLogger(slog.New(slog.DiscardHandler))

var errBroken = errors.New("the store is broken")

// A brokenStore answers every operation with an error.
type brokenStore struct{ takes atomic.Int64 }

func (s *brokenStore) Take(context.Context, []terms.Call) error {
	s.takes.Add(1)
	return errBroken
}
func (s *brokenStore) Peek(context.Context, []terms.Call) error     { return errBroken }
func (s *brokenStore) Settle(context.Context, []terms.Charge) error { return errBroken }
func (s *brokenStore) Renew(context.Context, []terms.Call) error    { return errBroken }
func (s *brokenStore) Hold(context.Context, []terms.Charge) error   { return errBroken }
func (s *brokenStore) Reset(context.Context, []terms.Charge) error  { return errBroken }

// key returns a key of one part.
func key(id string) *runtime.Key { return runtime.NewKey().AddString(id) }

// withContext returns f as a function of an observer that receives a context.
func withContext[E any](f func(E)) func(context.Context, E) {
	return func(_ context.Context, ev E) { f(ev) }
}

// causes returns the texts of an error and of all that it wraps.
func causes(err error) (texts string) {
	for ; err != nil; err = errors.Unwrap(err) {
		texts += err.Error() + "\n"
	}
	return texts
}
