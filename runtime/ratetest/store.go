package ratetest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A store counts in memory, by the clock of a test. It gives scripted answers, and
// writes down what happens.
type store struct {
	terms.Store
	clock
	t    testing.TB
	list *findings.List // of the limiter

	mu      sync.Mutex
	ended   bool // t must not be used any more
	scripts map[string]*script
	held    map[permit]terms.Charge
	record
}

// A permit is that of a call which runs.
type permit struct {
	key string
	at  int64
}

// newStore returns a store, and the one in memory behind it.
func newStore(t testing.TB) (*store, *runtime.MemoryStore) {
	s := &store{
		clock: clock{begin: start}, t: t, scripts: map[string]*script{}, held: map[permit]terms.Charge{},
		record: record{rules: map[string]*tally{}, checked: map[string]bool{}},
	}
	memory := runtime.NewMemoryStore(runtime.WithClock(s.now))
	if now := time.Now(); now.Before(bubbles) {
		s.clock.begin, s.bubble = now, true
		memory = runtime.NewMemoryStore()
	}
	s.Store = bridge.EngineOf(memory).(terms.Store)
	return s, memory
}

// Take implements [terms.Store].
func (s *store) Take(ctx context.Context, calls []terms.Call) error {
	return s.decide(ctx, calls, true)
}

// Peek implements [terms.Store].
func (s *store) Peek(ctx context.Context, calls []terms.Call) error {
	return s.decide(ctx, calls, false)
}

func (s *store) decide(ctx context.Context, calls []terms.Call, commit bool) error {
	replies := make([]reply, len(calls))
	slow := time.Duration(0)
	s.mu.Lock()
	for i := range calls {
		replies[i] = s.reply(&calls[i], commit)
		slow = max(slow, replies[i].slow)
	}
	s.mu.Unlock()
	if slow > 0 && commit {
		if err := sleep(ctx, slow); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range calls {
		call := &calls[i]
		r := replies[i]
		if r.unavailable {
			call.Err = errUnavailable
			s.stay(call) // also where this process decides alone
		} else if r.refused != nil {
			call.Err = s.refuse(ctx, call, r.refused, commit)
		} else {
			call.Err = s.count(ctx, call, commit)
		}
		if call.Err == nil && commit {
			s.reportWait(call)
			s.hold(call)
		}
	}
	return nil
}

// count has a call decided by its counts.
func (s *store) count(ctx context.Context, call *terms.Call, commit bool) error {
	one := []terms.Call{*call}
	do := s.Store.Take
	if !commit {
		do = s.Store.Peek
	}
	if err := do(ctx, one); err != nil {
		return err
	}
	return one[0].Err
}

// refuse decides a call of which some charges are refused for a time, and the others
// by their counts.
func (s *store) refuse(ctx context.Context, call *terms.Call, refused []time.Duration, commit bool) error {
	var others terms.Call
	for i, retryAfter := range refused {
		c := &call.Charges[i]
		if retryAfter == 0 {
			others.Charges = append(others.Charges, *c)
			continue
		}
		c.Result = terms.Result{RetryAfter: retryAfter}
		if retryAfter != runtime.Never {
			c.ResetAfter = retryAfter
		}
		commit = commit && c.Shadow // nothing else is charged
	}
	if err := s.count(ctx, &others, commit); err != nil {
		return err
	}
	for i := range call.Charges {
		if refused[i] == 0 {
			call.Charges[i].Result = others.Charges[0].Result
			others.Charges = others.Charges[1:]
		}
	}
	return nil
}

// hold notes what a call holds.
func (s *store) hold(call *terms.Call) {
	for i := range call.Charges {
		if c := call.Charges[i]; c.Lapses() && c.At != 0 {
			id := permit{string(c.Key), c.At}
			c.Key = []byte(id.key) // the call's own is used again
			s.held[id] = c
		}
	}
}

// Settle implements [terms.Store].
func (s *store) Settle(ctx context.Context, charges []terms.Charge) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range charges {
		c := &charges[i]
		s.checkTime(c)
		id := permit{string(c.Key), c.At}
		_, held := s.held[id]
		delete(s.held, id)
		if c.Reserve > 0 && c.Mark == 0 {
			c.Mark = terms.Lasted // no process is cut off, and the limiter does not know of advance
		}
		if held || !c.Is(algorithm.Lends) {
			s.settled(s.since(), c)
		}
	}
	return s.Store.Settle(ctx, charges)
}

// Renew implements [terms.Store].
func (s *store) Renew(ctx context.Context, calls []terms.Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renew(ctx, calls)
}

func (s *store) renew(ctx context.Context, calls []terms.Call) error {
	var ids []permit
	for i := range calls {
		c := &calls[i].Charges[0]
		s.checkTime(c)
		ids = append(ids, permit{string(c.Key), c.At})
	}
	err := s.Store.Renew(ctx, calls)
	for i := range calls {
		if calls[i].Charges[0].At == 0 {
			delete(s.held, ids[i]) // it was reset
		}
	}
	return err
}

// renewHeld renews what the calls hold that run, reservations for a time more.
func (s *store) renewHeld(more time.Duration) {
	var calls []terms.Call
	for _, c := range s.held {
		if c.Reserve > 0 {
			c.Reserve += more.Microseconds()
		}
		calls = append(calls, terms.Call{Charges: []terms.Charge{c}})
	}
	_ = s.renew(context.Background(), calls) // memory does not fail
}

// advance moves the clock. The limiter renews permits by the process's clock, which
// does not move along outside of a bubble, so it is done here: also before, since the
// store remembers for a window only that a permit was reset.
func (s *store) advance(d time.Duration) {
	if s.bubble {
		synctest.Wait()
		time.Sleep(d)
		synctest.Wait()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.bubble {
		s.renewHeld(d)
		s.moved.Add(int64(d))
		s.renewHeld(0)
	}
	s.note(s.since(), "", "", "the clock was moved", "by "+period(d))
}

// Reset implements [terms.Store].
func (s *store) Reset(ctx context.Context, charges []terms.Charge) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range charges {
		c := &charges[i]
		s.note(s.since(), c.Label.Name, string(c.Label.Parts(c.Key)), "reset", "")
	}
	return s.Store.Reset(ctx, charges)
}

// Decided receives every limit of a call that was decided, however it was.
func (s *store) Decided(r *runtime.Rule, key string, at int64, ev observe.DecisionEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decided(s.since(), partsOf(r, key), at != 0, ev)
	if !s.bubble && ev.Source == rule.SourceLocal && ev.Verdict == observe.VerdictRefused && ev.RetryAfter <= r.Wait {
		s.reportWaiting(r.Name, "for "+period(ev.RetryAfter))
	}
}

// Listen receives the list of the limiter.
func (s *store) Listen(list *findings.List) { s.list = list }

// unasked reports whether no call has met a rule, and the test has asked for none.
func (s *store) unasked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rules) == 0 && len(s.checked) == 0
}

// end is called when the test has ended, with what the limiter has found.
func (s *store) end(names map[string]bool, found []string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.t.Failed() || s.t.Skipped() {
		return
	}
	for _, line := range s.unmet() {
		s.t.Errorf("ratetest: %s\n%s%s", line, known(names), s.history())
	}
	for _, rule := range slices.Sorted(maps.Keys(s.checked)) {
		if !s.checked[rule] {
			s.t.Errorf("ratetest: Check(%q) expects nothing: call its Admitted, Refused, Verdict, Cost or Keys", rule)
		}
	}
	if len(found) > 0 && !s.t.Failed() {
		s.t.Errorf("ratetest: %s\nLimiter.Accept names what is meant to be so", strings.Join(found, "\n"))
	}
}
