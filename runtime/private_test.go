package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rawstore"
)

const (
	// caller is the part of a key that nobody is to read in an error, an event or a log.
	caller = "alice@example.com"
	// address is that of a server, as errors name it.
	address = "10.20.30.40:6379"
)

// Notes are the texts of log lines, events and errors, to find in them what nobody is
// to read there: a caller's key and a server's address.
type notes struct {
	mu    sync.Mutex
	texts bytes.Buffer
	lines int // texts that were noted
	errs  []error
	all   bool // every way of counting is used
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines++
	return n.texts.Write(p)
}

// note notes the text of an error, and of nothing else that is reached through it.
func (n *notes) note(what string, err error) {
	if err == nil {
		return
	}
	fmt.Fprintf(n, "%s: %v\n", what, err)
	if !errors.Is(err, runtime.ErrLimited) {
		n.errs = append(n.errs, err)
	}
}

// limiter returns a limiter that reports to the notes. Two fields of events are left
// out, which are there to say a key and an address.
func (n *notes) limiter(store runtime.Store, opts ...runtime.Option) *runtime.Limiter {
	return runtime.New(store, append([]runtime.Option{
		runtime.WithLogger(slog.New(slog.NewTextHandler(n, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		observing(observe.Observer{
			Decision:   withContext(noted[observe.DecisionEvent](n)),
			KeyRefused: func(_ context.Context, ev observe.KeyRefusedEvent) { fmt.Fprintf(n, "%s\n", ev.Rule) },
			Failure:    withContext(noted[observe.FailureEvent](n)),
			Breaker:    func(ev observe.BreakerEvent) { fmt.Fprintf(n, "breaker %v\n", ev.Open) },
			Override:   noted[observe.OverrideEvent](n), Scale: noted[observe.ScaleEvent](n),
			Memory: noted[observe.MemoryEvent](n), Panic: noted[observe.PanicEvent](n),
		}),
	}, opts...)...)
}

// noted returns a function of an observer that notes events.
func noted[E any](w *notes) func(E) { return func(ev E) { fmt.Fprintf(w, "%+v\n", ev) } }

// brokenText is the part of a key that cannot be written, and says what it is.
type brokenText struct{}

func (brokenText) MarshalText() ([]byte, error) { return nil, errors.New("cannot write " + caller) }

// use calls all that a limiter does with limits, twice settling what was admitted
// before something happened. If the store is one of Redis its keys are surveyed. The rules
// are of three ways of counting, or of every one.
func (n *notes) use(t *testing.T, l *runtime.Limiter, store runtime.Store, happens func()) {
	ctx := t.Context()
	var limits []runtime.Limit
	var decisions []runtime.Decision
	var groups []*bridge.KeyGroup
	for name, rule := range serverRules(time.Minute, 3) {
		if !n.all && !slices.Contains([]string{"log packed", "fixed", "permits"}, name) {
			continue
		}
		rule.Prefix = "{x}" + name + ":"
		limit := rule.Limit(key(caller))
		d, err := l.Take(ctx, limit)
		n.note("take before", err)
		fmt.Fprintf(n, "%+v, %+v\n", d, runtime.Outcome{Decision: d, Err: err})
		limits, decisions, groups = append(limits, limit), append(decisions, d), append(groups, bridge.LimiterOf(l).KeysOf(rule))
	}
	happens()
	for i, limit := range limits {
		if i%2 == 0 {
			n.note("settle", l.Settle(ctx, decisions[i], 0))
		} else {
			l.SettleLater(ctx, decisions[i], 0)
		}
		for range 4 {
			_, err := l.Take(ctx, limit)
			n.note("take", err)
		}
		_, err := l.Peek(ctx, limit)
		n.note("peek", err)
		n.note("reset", l.Reset(ctx, limit))
	}
	_, err := l.Take(ctx, limits[:3]...)
	n.note("take of several", err)
	for _, odd := range []runtime.Limit{
		narrow.Limit(key(strings.Repeat(caller, 100))), narrow.Limit(key(caller + "\x00{}:%")), narrow.Limit(key(caller)).WithCost(3),
		narrow.Limit(key(caller)).WithMax(-1), narrow.Limit(key(caller).AddInvalid("nil")), narrow.Limit(runtime.NewKey().AddText(brokenText{})),
	} {
		limits = append(limits, odd, odd)
	}
	for _, out := range l.TakeEach(ctx, limits...) {
		if !errors.Is(out.Err, runtime.ErrInvalidLimit) && !errors.Is(out.Err, runtime.ErrInvalidKey) {
			n.note("take each", out.Err)
		}
	}
	if redis, ok := store.(*runtime.RedisStore); ok {
		n.note("survey", bridge.StoreOf(redis).Survey(ctx, groups...))
		n.note("close", redis.Close())
	}
	n.note("close", l.Close())
}

// find fails the test if something private was noted, or nothing at all.
func (n *notes) find(t *testing.T, private ...string) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lines == 0 {
		t.Error("nothing was noted")
	}
	asBytes := strings.Trim(fmt.Sprint([]byte(caller)), "[]") // how package fmt prints what is no text
	for line := range strings.Lines(n.texts.String()) {
		for _, p := range append(private, caller, asBytes, address, "10.20.30.40") {
			if regexp.MustCompile(regexp.QuoteMeta(p) + `\b`).MatchString(line) {
				t.Errorf("%q is in: %.600s", p, line)
			}
		}
	}
}

// A quotingStore has a store fail once it has an error.
type quotingStore struct {
	terms.Store
	err error
}

func (s *quotingStore) Take(ctx context.Context, calls []terms.Call) error {
	if s.err == nil {
		return s.Store.Take(ctx, calls)
	}
	if len(calls) > 1 {
		return s.err
	}
	calls[0].Err = s.err // of one call it is the call's own
	return nil
}

func (s *quotingStore) Peek(context.Context, []terms.Call) error     { return s.err }
func (s *quotingStore) Reset(context.Context, []terms.Charge) error  { return s.err }
func (s *quotingStore) Renew(context.Context, []terms.Call) error    { return s.err }
func (s *quotingStore) Settle(context.Context, []terms.Charge) error { return s.err }

// TestNothingPrivateOfFunctions has functions panic that a limiter was given.
func TestNothingPrivateOfFunctions(t *testing.T) {
	t.Parallel()
	type said struct{ Key string }
	for name, fail := range map[string]func(){
		"text":    func() { panic(caller + " at " + address) },
		"error":   func() { panic(errors.New(caller + address)) },
		"value":   func() { panic(said{caller}) },
		"mistake": func() { _ = []bool(nil)[len(caller)] },
	} {
		t.Run(name, func(t *testing.T) {
			var w notes
			l := w.limiter(runtime.NewMemoryStore(),
				runtime.WithEnabled(func() bool { fail(); return false }),
				runtime.WithRefusalError(func(context.Context, error) error { fail(); return nil }),
				runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) { fail(); return runtime.Overrides{}, nil }), time.Hour),
				observing(observe.Observer{
					KeyRefused: func(context.Context, observe.KeyRefusedEvent) { fail() },
					Decision:   func(context.Context, observe.DecisionEvent) { fail() },
				}))
			w.use(t, l, nil, func() {})
			w.find(t)
			if name == "mistake" && !strings.Contains(w.texts.String(), "index out of range") {
				t.Error("the log does not say what the mistake is")
			}
		})
	}
}

// TestCauseIsKept wants what an error does not say to be reached by errors.Unwrap.
func TestCauseIsKept(t *testing.T) {
	t.Parallel()
	cause := fmt.Errorf("node %s: %w", address, os.ErrDeadlineExceeded)
	store := &quotingStore{err: cause}
	var failed error
	l := runtime.New(rawstore.New(store, nil), quiet, closed, observing(observe.Observer{
		Failure: func(_ context.Context, ev observe.FailureEvent) { failed = ev.Err },
	}))
	limit := (&runtime.Rule{Name: "r", Prefix: "r:", Window: time.Minute, Max: 3}).Limit(key(caller))
	_, taken := l.Take(t.Context(), limit)
	_, peeked := l.Peek(t.Context(), limit)
	for name, err := range map[string]error{"take": taken, "peek": peeked, "reset": l.Reset(t.Context(), limit), "event": failed} {
		next := err
		for next != nil && next != cause {
			next = errors.Unwrap(next)
		}
		if got := runtime.ClassOf(err); next == nil || got != observe.ClassTimeout {
			t.Errorf("%s: errors.Unwrap leads from %v to %v; the class is %v", name, err, next, got)
		}
	}
	if got, want := taken.Error(), runtime.ErrUnavailable.Error(); got != want || !errors.Is(taken, runtime.ErrUnavailable) {
		t.Errorf("a client that sees the error reads %q, want %q", got, want)
	}
}
