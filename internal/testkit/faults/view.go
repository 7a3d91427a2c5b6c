package faults

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A view is a fault as it is seen through one policy.
type view struct {
	policy   runtime.FailurePolicy
	stores   []*runtime.RedisStore
	limiters []*runtime.Limiter
	limits   []runtime.Limit
	start    time.Time

	mu      sync.Mutex
	records []record
	classes map[string]int
}

func newView(site *site, policy runtime.FailurePolicy, start time.Time) *view {
	v := &view{policy: policy, start: start, classes: map[string]int{}}
	for range processes {
		// Every call is to need Redis, also one that was refused a moment ago.
		store := site.connect(runtime.WithRefusalMemory(0))
		v.stores = append(v.stores, store)
		v.limiters = append(v.limiters, runtime.New(store,
			runtime.WithNamespace(policy.String()),
			runtime.WithFailurePolicy(policy),
			runtime.WithReplicas(processes),
			runtime.WithLogger(silent),
			runtime.WithObserver(&observe.Observer{Failure: v.failure})))
	}
	for _, tag := range site.tags {
		rule := &runtime.Rule{Name: "fault", Prefix: "fault:{" + tag + "}:", Window: window, Max: perWindow}
		for i := range keys {
			v.limits = append(v.limits, rule.Limit(runtime.NewKey().AddInt(int64(i))))
		}
	}
	return v
}

// warm calls until the store decides on every key: connections have to be
// dialed and scripts to be loaded once.
func (v *view) warm() error {
	for until := time.Now().Add(warmLimit); ; time.Sleep(pause) {
		var failed error
		for _, limiter := range v.limiters {
			for _, limit := range v.limits {
				if d, err := limiter.Peek(context.Background(), limit); d.Source != rule.SourceStore {
					failed = errors.Join(err, errors.New("not decided by the store"))
				}
			}
		}
		if failed == nil || time.Now().After(until) {
			return failed
		}
	}
}

// call calls on one key after the other until stop is closed.
func (v *view) call(from int, stop <-chan struct{}) {
	for i := from; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(pause):
		}
		key := i % len(v.limits)
		r := record{key: key, begin: time.Since(v.start)}
		decision, err := v.limiters[from%processes].Take(context.Background(), v.limits[key])
		r.end = time.Since(v.start)
		r.source, r.fate = decision.Source, fateOf(err)
		v.mu.Lock()
		v.records = append(v.records, r)
		v.mu.Unlock()
	}
}

// settled reports whether the store has decided every call for a while, and
// refused one on every key since: limits are enforced.
func (v *view) settled(over, lasts time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Since(v.start)
	back := v.back(times{over: over, stop: now})
	return now >= over+lasts && back >= 0 && v.enforced(back) >= 0
}

// failure counts a call that the store did not decide by the class of its
// error.
func (v *view) failure(_ context.Context, e observe.FailureEvent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.classes[e.Class.String()]++
}

func (v *view) close() (err error) {
	for i := range v.limiters {
		err = errors.Join(err, v.limiters[i].Close(), v.stores[i].Close())
	}
	return err
}
