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
	eachCase(t, map[string]bool{"heeds its context": true, "does not": false}, func(t *testing.T, heeds bool) {
		var events recorder[runtime.OverrideEvent]
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
		equal(t, "New took", elapsed(func() {
			limiter = inMemory(runtime.WithOverrides(source, time.Second), observing(runtime.Observer{Override: events.add}))
		}), 100*time.Millisecond)
		time.Sleep(30 * time.Second)
		if all := events.all(); len(all) != 1 || all[0].Err == nil || errors.Is(all[0].Err, runtime.ErrInvalidOverrides) {
			t.Errorf("observed %+v, want that it hangs", all)
		}
		var err error
		if took := elapsed(func() { err = limiter.Close() }); took > time.Second || (err == nil) != heeds {
			t.Errorf("closed after %v: %v", took, err)
		}
		close(release)
		ok(t, limiter.Close())
		if !limiter.Enabled() {
			t.Error("overrides came into force after Close")
		}
	})
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
		concurrently(3, func(int) { ok(t, limiter.Close()) })
	}
	if followed.Enabled() {
		t.Error("the overrides are gone with Close")
	}
}
