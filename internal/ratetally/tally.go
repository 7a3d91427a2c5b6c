// Package ratetally counts what limiters and their stores report, for modules that export
// it as metrics, and not for programs: these use rateprom or rateotel. Counting a decision
// takes a few atomic additions and allocates nothing.
package ratetally

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	rules "github.com/rategen/rategen/runtime/rule"
)

// A Tally counts the events of one or more limiters. It is safe for concurrent use.
type Tally struct {
	names *names
	nodes nodes

	overridden, rejected  atomic.Int64
	unread                atomic.Bool
	memoryUsed, memoryMax atomic.Int64
	evicted               atomic.Int64
	measured              atomic.Bool // the memory was

	mu       sync.Mutex
	limiters []weak.Pointer[runtime.Limiter] // a tally does not keep them in memory
	closed   weak.Pointer[runtime.Limiter]   // the last of them
	attached bool                            // there was a limiter
	panics   map[string]uint64               // by kind of function
}

// New returns a tally without events.
func New() *Tally {
	t := &Tally{names: newNames(), panics: map[string]uint64{}}
	t.nodes.open = map[string]bool{"": false}
	for _, in := range functions {
		t.panics[in] = 0
	}
	return t
}

// functions are the kinds of functions that a [observe.PanicEvent] names.
var functions = []string{
	"observer", "recorder", "log handler", "override source", "scaler", "kill switch", "refused", "redis client", "store",
}

// Observer returns an observer that counts everything but decisions. Its user adds
// the function Decision, which calls [Tally.Decided].
func (t *Tally) Observer() *observe.Observer {
	return &observe.Observer{
		Attach: t.attach,
		Detach: t.detach,
		Threshold: func(ev observe.ThresholdEvent) {
			t.names.rule(ev.Rule).reached(ev)
		},
		Failure: func(_ context.Context, ev observe.FailureEvent) {
			t.names.rule(ev.Rule).failed(ev)
		},
		Hidden: func(_ context.Context, ev observe.HiddenEvent) {
			r := t.names.rule(ev.Rule)
			if ev.Served {
				r.served.Add(1)
			} else {
				r.hidden.Add(1)
			}
		},
		Wait: func(_ context.Context, ev observe.WaitEvent) {
			t.names.rule(ev.Rule).wait(ev)
		},
		PeerRefused: func(_ context.Context, ev observe.PeerRefusedEvent) {
			t.names.rule(ev.Rule).refused.Add(1)
		},
		Hold: func(_ context.Context, ev observe.HoldEvent) {
			t.names.rule(ev.Rule).hold(ev)
		},
		Breaker: func(ev observe.BreakerEvent) { t.nodes.set(ev.Node, ev.Open) },
		Override: func(ev observe.OverrideEvent) {
			t.overridden.Store(int64(ev.Rules))
			wrong := errors.Is(ev.Err, runtime.ErrInvalidOverrides)
			t.unread.Store(ev.Err != nil && !wrong)
			if wrong {
				t.rejected.Add(1)
			}
		},
		Scale: func(ev observe.ScaleEvent) { t.names.rule(ev.Rule).factor.Store(&ev.Factor) },
		Memory: func(ev observe.MemoryEvent) {
			t.memoryUsed.Store(ev.Used)
			t.memoryMax.Store(ev.Max)
			t.evicted.Add(ev.Evicted)
			t.measured.Store(true)
		},
		Panic: t.panicked,
	}
}

// Decided counts a decision, and returns the label of its rule.
func (t *Tally) Decided(ev *observe.DecisionEvent) (rule string) {
	r := t.names.rule(ev.Rule)
	r.decided(ev)
	return r.label
}

// trip is the least that a decision takes which waits for a server.
const trip = 10 * time.Microsecond

// Waited reports whether a decision waited for the store, so that its duration is
// worth measuring. Others, and those of a store in memory, take about a microsecond.
func Waited(ev *observe.DecisionEvent) bool {
	return ev.Latency >= trip && int(ev.Source) < len(waits) && waits[ev.Source]
}

// Waits are the sources of decisions that may have waited for the store.
var Waits = []rules.Source{rules.SourceStore, rules.SourceLocal, rules.SourceFailure}

var waits = func() (is [sources]bool) {
	for _, source := range Waits {
		is[source] = true
	}
	return is
}()

func (t *Tally) attach(attached observe.Limiter) {
	l := attached.(*runtime.Limiter)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attached = true
	if p := weak.Make(l); !slices.Contains(t.limiters, p) {
		t.limiters = append(slices.DeleteFunc(t.limiters, isGone), p)
	}
}

// detach ends what is read of a limiter. What was told of its rules and overrides ends
// with the last limiter.
func (t *Tally) detach(attached observe.Limiter) {
	l := attached.(*runtime.Limiter)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = weak.Make(l)
	t.limiters = slices.DeleteFunc(t.limiters, func(p weak.Pointer[runtime.Limiter]) bool { return p == weak.Make(l) || isGone(p) })
	if len(t.limiters) > 0 {
		return
	}
	t.overridden.Store(0)
	t.unread.Store(false)
	for _, r := range t.names.all() {
		r.factor.Store(nil)
	}
}

// isGone reports whether a limiter is not in memory any more.
func isGone(p weak.Pointer[runtime.Limiter]) bool { return p.Value() == nil }

func (t *Tally) panicked(ev observe.PanicEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.panics[ev.In]++
}
