package ratetest

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/observe"
)

// A Limiter is a limiter for a test. Its methods may be called from several
// goroutines, except for Advance.
type Limiter struct {
	// Limiter is what the code under test is given. It counts in memory.
	*runtime.Limiter

	store    *store
	accepted []string // codes of findings
}

// Accept accepts findings with these codes, see [runtime.Limiter.Findings]: the test does not fail
// for them. An unknown code fails the test.
func (l *Limiter) Accept(codes ...string) {
	for _, code := range codes {
		if !slices.Contains(report.Codes(), code) {
			l.store.t.Helper()
			l.store.t.Errorf("ratetest: Accept(%q): no finding has this code: see docs/troubleshooting.md", code)
		}
	}
	l.accepted = append(l.accepted, codes...)
}

// start is when clocks begin that are not a bubble's.
var start = time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)

// bubbles is after the times of all bubbles of testing/synctest, which begin in the
// year 2000, and before all others.
var bubbles = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

// New returns a limiter with the options of a [runtime.Limiter]. Its log goes to the
// output of the test. It is closed when the test ends. In a bubble, t is that of the
// bubble.
func New(t testing.TB, opts ...runtime.Option) *Limiter {
	t.Helper()
	s, memory := newStore(t)
	store := bridge.NewStore(s, memory, false).(runtime.Store)
	logger := runtime.WithLogger(slog.New(slog.NewTextHandler(t.Output(), nil)))
	l := &Limiter{Limiter: runtime.New(store, append([]runtime.Option{logger}, opts...)...), store: s}
	t.Cleanup(func() {
		t.Helper()
		if s.bubble && !inBubble() { // its timers can only be stopped in their bubble
			t.Errorf("ratetest: the limiter was made in a bubble of testing/synctest, with the t of a test outside: call New with the t that synctest.Test passes on")
			return
		}
		found := l.found()
		if err := l.Close(); err != nil {
			t.Errorf("ratetest: the limiter cannot be closed: %v", err)
		}
		s.end(l.names(), found)
	})
	return l
}

// inBubble reports whether the caller is in a bubble of testing/synctest, also when the
// clock there has been moved past [bubbles]: its times have no monotonic clock reading.
func inBubble() bool {
	now := time.Now()
	return now == now.Round(0)
}

// Unlimited returns a limiter that admits every call and counts nothing.
func Unlimited() *runtime.Limiter {
	return runtime.New(nil, runtime.WithEnabled(func() bool { return false }))
}

// Now returns the time by which the limiter counts.
func (l *Limiter) Now() time.Time { return l.store.now() }

// farthest is how far Advance moves a clock in all. Twice as far, a time in
// nanoseconds would no longer fit into 64 bits.
const farthest = 100 * 365 * 24 * time.Hour

// Advance moves the limiter's clock by d, which is not negative, and by at most 100
// years in all. In a bubble it sleeps for d, and returns when all other goroutines of
// the bubble are blocked.
func (l *Limiter) Advance(d time.Duration) {
	l.store.t.Helper()
	if d < 0 {
		l.store.t.Fatalf("ratetest: Advance(%v): a clock does not go back", d)
	}
	if d > farthest-l.store.since() {
		l.store.t.Fatalf("ratetest: Advance(%v): a clock moves by at most 100 years in all, and this one has moved by %v", d, l.store.since())
	}
	l.store.advance(d)
}

// found returns what the limiter has found and the test has not accepted.
func (l *Limiter) found() (lines []string) {
	states := l.Rules()
	called := slices.ContainsFunc(states, func(s observe.RuleState) bool { return s.Called })
	if len(states) > 0 && !called && l.store.unasked() {
		lines = append(lines, "limiter_unused: no call has met the limiter: give the code under test the wrapper that has it")
	}
	l.Findings() // takes what is over from the list
	for _, f := range l.store.list.All() {
		if f.Fades { // as the test has scripted
			continue
		}
		lines = append(lines, f.String())
	}
	return slices.DeleteFunc(lines, func(line string) bool {
		return slices.ContainsFunc(l.accepted, func(code string) bool {
			rest, is := strings.CutPrefix(line, code)
			return is && strings.IndexAny(rest, " :") == 0
		})
	})
}

// names returns the names of all rules that are registered or were met.
func (l *Limiter) names() map[string]bool {
	names := l.store.met()
	for _, state := range l.Rules() {
		names[state.Rule.Name] = true
	}
	return names
}

// A clock tells how far the time of a test was moved.
type clock struct {
	begin  time.Time
	bubble bool
	moved  atomic.Int64 // by Advance, outside of a bubble
}

func (c *clock) now() time.Time {
	if c.bubble {
		return time.Now()
	}
	return c.begin.Add(time.Duration(c.moved.Load()))
}

// since returns how long ago the clock began.
func (c *clock) since() time.Duration { return c.now().Sub(c.begin) }

// sleep waits for d in a bubble, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
