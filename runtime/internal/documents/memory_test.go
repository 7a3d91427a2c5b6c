package documents

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
)

// century is a time that no test reaches by itself.
var century = time.Date(2100, time.January, 1, 0, 0, 0, 123456000, time.UTC)

// TestMemoryStore has the store that others are measured by, whose answers -update accepts.
func TestMemoryStore(t *testing.T) {
	t.Parallel()
	Run(t, func(*testing.T) Subject {
		var clock atomic.Int64
		clock.Store(century.UnixMicro())
		return Subject{
			Store: runtime.NewMemoryStore(runtime.WithClock(func() time.Time { return time.UnixMicro(clock.Load()) })),
			Now:   clock.Load, Exact: true,
			Advance: func(d time.Duration) { clock.Add(d.Microseconds()) },
		}
	})
}

func TestMain(m *testing.M) { limittest.Main(m) }
