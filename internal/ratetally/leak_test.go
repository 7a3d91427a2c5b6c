package ratetally_test

import (
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/ratetally"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
)

// TestLimitersThatAreGone wants the memory of closed limiters back, and nothing of
// their rules but what was counted.
func TestLimitersThatAreGone(t *testing.T) {
	const limiters = 100
	counted := ratetally.New()
	o := counted.Observer()
	var gone atomic.Int64
	for range limiters {
		limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(o))
		limiter.Register(&runtime.Rule{Name: "a", Window: time.Second, Max: 1})
		if max := read(t, counted)[`rategen.rule.limit["a"]`]; max != 1 {
			t.Fatalf("max %v of a limiter in use, want 1", max)
		}
		goruntime.AddCleanup(limiter, func(int) { gone.Add(1) }, 0)
		limittest.OK(t, limiter.Close())
	}
	for start := time.Now(); gone.Load() < limiters; {
		goruntime.GC()
		if time.Since(start) > time.Minute {
			t.Fatalf("%d of %d limiters are gone", gone.Load(), limiters)
		}
	}
	got := read(t, counted)
	if _, ok := got[`rategen.rule.limit["a"]`]; ok {
		t.Errorf("a rule of limiters that are gone has a max: %v", got)
	}
	if _, ok := got[`rategen.decisions["a" "admitted" "store"]`]; !ok {
		t.Errorf("the count of decisions is gone: %v", got)
	}
}

// TestClosedLimiter wants the gauges of a limiter to end when it is closed, though
// somebody still has it.
func TestClosedLimiter(t *testing.T) {
	counted := ratetally.New()
	o := counted.Observer()
	open := func(max int64) *runtime.Limiter {
		l := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(o))
		l.Register(&runtime.Rule{Name: "a", Window: time.Second, Max: max})
		return l
	}
	first, second := open(1), open(2)
	for _, step := range []struct {
		end  *runtime.Limiter
		want float64
	}{{first, 2}, {first, 2}, {second, 0}} {
		limittest.OK(t, step.end.Close())
		if max := read(t, counted)[`rategen.rule.limit["a"]`]; max != step.want {
			t.Errorf("max %v, want %v", max, step.want)
		}
	}
	goruntime.KeepAlive(first)
}
