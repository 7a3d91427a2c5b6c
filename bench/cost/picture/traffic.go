// Package picture draws what every algorithm lets through of the same traffic,
// docs/algorithms.svg. Nothing in it is made up: the calls are put to a
// [runtime.MemoryStore], which decides as the scripts do, in fake time. It also draws how
// fast limiters are, docs/speed.svg, by what was measured last. How both look stands in
// pictures.svg.tmpl. To draw them anew:
//
//	go test ./cost/picture -update
package picture

import (
	"context"
	"errors"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

const (
	window  = 10 * time.Second
	maximum = 20
	length  = 62 * time.Second
)

// traffic returns when the calls come: one alone, then a burst around the
// moment at which the fixed window that the first one opened is over, then for
// a long time twice as many as the limit lets through.
func traffic() []time.Duration {
	calls := []time.Duration{0}
	for t := 8 * time.Second; t < 12*time.Second; t += 100 * time.Millisecond {
		calls = append(calls, t)
	}
	for t := 26 * time.Second; t < 50*time.Second; t += 250 * time.Millisecond {
		calls = append(calls, t)
	}
	return calls
}

// A lane is one row of the picture.
type lane struct {
	Name, Note string
	rule       *runtime.Rule // nil: the traffic itself

	passed  []time.Duration // when calls went on, ascending
	refused []time.Duration
	Y       int // in the picture
}

func lanes() []*lane {
	return []*lane{
		{Name: "all calls", Note: "before any limit"},
		{Name: "sliding-log", Note: "exact", rule: &runtime.Rule{}},
		{Name: "sliding-counter", Note: "buckets=10", rule: &runtime.Rule{
			Algorithm: runtime.SlidingCounter, Buckets: rule.EqualBuckets(10)}},
		{Name: "fixed-window", Note: "starts with its first call", rule: &runtime.Rule{
			Algorithm: runtime.FixedWindow}},
		{Name: "token-bucket", Note: "burst=20, as max", rule: &runtime.Rule{
			Algorithm: runtime.TokenBucket}},
		{Name: "token-bucket", Note: "burst=5", rule: &runtime.Rule{
			Algorithm: runtime.TokenBucket, Burst: 5}},
		{Name: "leaky-bucket", Note: "wait=4s, a queue", rule: &runtime.Rule{
			Algorithm: runtime.LeakyBucket, Wait: 4 * time.Second}},
	}
}

// run puts the traffic to the lane's limit. It must run in fake time.
func (l *lane) run(calls []time.Duration) error {
	if l.rule == nil {
		l.passed = calls
		return nil
	}
	l.rule.Name, l.rule.Window, l.rule.Max = l.Name, window, maximum
	store := runtime.NewMemoryStore()
	begin := time.Now()
	for _, at := range calls {
		time.Sleep(time.Until(begin.Add(at)))
		call := []rawstore.Call{{Charges: []rawstore.Charge{{
			Rule: l.rule, Key: []byte("key"), Max: maximum, Cost: 1, Wait: l.rule.Wait,
		}}}}
		if err := errors.Join(rawstore.Wrap(store).Take(context.Background(), call), call[0].Err); err != nil {
			return err
		}
		if charge := call[0].Charges[0]; charge.Allowed {
			l.passed = append(l.passed, at+charge.Delay)
		} else {
			l.refused = append(l.refused, at)
		}
	}
	return nil
}

// A step is a change of how many calls have passed in the last window.
type step struct {
	at    time.Duration
	count int
}

// steps returns how many calls have passed in the last window, and the most
// that ever had.
func (l *lane) steps() (steps []step, most int) {
	inside, left := 0, 0
	for i := 0; i < len(l.passed) || left < len(l.passed); {
		// The window is (t-W, t]: who leaves it leaves before who comes.
		if i == len(l.passed) || l.passed[left]+window <= l.passed[i] {
			inside--
			steps = append(steps, step{l.passed[left] + window, inside})
			left++
			continue
		}
		inside++
		steps = append(steps, step{l.passed[i], inside})
		i++
		most = max(most, inside)
	}
	return steps, most
}
