package limittest

import (
	"context"
	"flag"
	goruntime "runtime"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/leaks"
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
	leaks.Main(m)
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
