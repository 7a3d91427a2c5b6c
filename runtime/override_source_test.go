package runtime_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A source that panics now and then leaves in force what it said in between.
func TestOverrideSourcePanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var panics, refused, looks atomic.Int64
		limiter := inMemory(observing(runtime.Observer{
			Panic: func(ev runtime.PanicEvent) {
				if ev.In == "override source" {
					panics.Add(1)
				}
			},
			Override: func(runtime.OverrideEvent) { refused.Add(1) },
		}), runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			if looks.Add(1) == 3 {
				return one(runtime.Override{Max: new(int64(1))}), nil
			}
			panic("out of ideas")
		}), time.Second))
		defer limiter.Close()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		wantPassing(t, limiter, (&runtime.Rule{Name: "r", Window: time.Hour, Max: 5}).Limit(nil), 10, 1)
		if panics.Load() != 3 || refused.Load() != 3 {
			t.Errorf("told of %d panics and %d overrides", panics.Load(), refused.Load())
		}
	})
}

// A source that goes on after its context is told of while it does, and again when it
// has answered after all.
func TestOverrideSourceLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen recorder[runtime.OverrideEvent]
		var first sync.Once
		source := runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			first.Do(func() { time.Sleep(10 * time.Second) })
			return runtime.Overrides{}, nil
		})
		limiter := inMemory(runtime.WithOverrides(source, time.Second), observing(runtime.Observer{Override: seen.add}))
		defer limiter.Close()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if events := seen.all(); len(events) != 2 || events[0].Err == nil || errors.Is(events[0].Err, runtime.ErrInvalidOverrides) || events[1].Err != nil {
			t.Errorf("observed %+v, want that it hangs, and that it is over", events)
		}
	})
}

// A source that hangs keeps neither New nor Close for long, if it heeds its
// context, and Close says so if it does not.
func TestOverrideSourceHangs(t *testing.T) {
	t.Parallel()
	for name, heeds := range map[string]bool{"heeds its context": true, "does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var refused atomic.Int64
				release := make(chan struct{})
				source := runtime.OverrideFunc(func(ctx context.Context) (runtime.Overrides, error) {
					if heeds {
						<-ctx.Done()
						return runtime.Overrides{}, ctx.Err()
					}
					<-release
					return runtime.Overrides{Enabled: new(false)}, nil
				})
				var limiter *runtime.Limiter
				if took := elapsed(func() {
					limiter = inMemory(runtime.WithOverrides(source, time.Second), observing(runtime.Observer{Override: func(ev runtime.OverrideEvent) {
						if ev.Err != nil && !errors.Is(ev.Err, runtime.ErrInvalidOverrides) {
							refused.Add(1)
						}
					}}))
				}); took != 100*time.Millisecond {
					t.Errorf("New took %v", took)
				}
				time.Sleep(30 * time.Second)
				equal(t, "events", refused.Load(), 1)
				if took := elapsed(func() {
					if err := limiter.Close(); (err == nil) != heeds {
						t.Errorf("close: %v", err)
					}
				}); took > time.Second {
					t.Errorf("Close took %v", took)
				}
				close(release)
				if err := limiter.Close(); err != nil {
					t.Errorf("close again: %v", err)
				}
				if !limiter.Enabled() {
					t.Error("overrides came into force after Close")
				}
			})
		})
	}
}

// New returns with the first overrides, which stay when the limiter is closed, as often
// and by as many as one likes.
func TestClose(t *testing.T) {
	t.Parallel()
	var looks atomic.Int64
	followed := runtime.New(nil, quiet, runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
		looks.Add(1)
		return runtime.Overrides{Enabled: new(false)}, nil
	}), time.Hour))
	if followed.Enabled() || looks.Load() != 1 {
		t.Error("New has returned before the first overrides")
	}
	for _, limiter := range []*runtime.Limiter{runtime.New(nil), followed, runtime.New(nil, runtime.WithOverrides(nil, 0), quiet)} {
		concurrently(3, func(int) {
			ok(t, limiter.Close())
		})
	}
	if followed.Enabled() {
		t.Error("the overrides are gone with Close")
	}
}
