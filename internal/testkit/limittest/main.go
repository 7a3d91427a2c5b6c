package limittest

import (
	"context"
	"flag"
	goruntime "runtime"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/rategen/rategen/internal/testkit/effort"
)

// Main is [Run], with few random tries of each property in a quick run.
func Main(m *testing.M) {
	flag.Parse()
	if checks := flag.Lookup("rapid.checks"); checks != nil && !effort.Full() && checks.Value.String() == checks.DefValue {
		_ = checks.Value.Set(strconv.Itoa(effort.Few(12)))
	}
	Run(m)
}

// Run runs the tests of a package, so many at a time for each processor, and wants them to
// leave no goroutine. The logs of Redis clients are left out: tests kill servers all the time.
func Run(m *testing.M) {
	redis.SetLogger(silence{})
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(strconv.Itoa(effort.PerProcessor() * goruntime.GOMAXPROCS(0)))
	}
	goleak.VerifyTestMain(m,
		// It dials once a second while a pool's dials fail, and sees only then
		// that its client is closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
