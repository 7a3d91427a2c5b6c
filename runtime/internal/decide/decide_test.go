package decide

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A storeFunc is a store that decides calls by a function.
type storeFunc struct {
	terms.Store
	take func(calls []terms.Call) error
}

func (s storeFunc) Take(_ context.Context, calls []terms.Call) error { return s.take(calls) }

// planOf returns the plan of a limit of 2, of which each of two processes has a share of 1.
func planOf(name string, fail rule.FailurePolicy, shadow bool) *plan.Plan {
	r := &rule.Rule{Name: name, Algorithm: rule.FixedWindow, Window: time.Hour}
	if shadow {
		r.Mode = rule.ModeShadow
	}
	p := &plan.Plan{Key: plan.Key{Rule: r, Max: 2}, Fail: fail, Declared: r, Numbers: plan.NumbersOf(r)}
	p.Name, p.Start = name, name+":"
	return p.Complete(2)
}

// callOf returns a call of limits.
func callOf(plans ...*plan.Plan) *Call {
	c := NewCall(Take)
	for _, p := range plans {
		(*Engine)(nil).put(c, Charge{Plan: p, Key: p.Whole, Cost: 1})
	}
	c.Begin(context.Background(), 0, clock.Now())
	return c
}

var sources = map[rule.Source]string{rule.SourceNone: "nobody", rule.SourceStore: "store", rule.SourceLocal: "local", rule.SourceFailure: "failure", rule.SourceRecalled: "recalled"}

// Each limit of a call that the store does not decide has a policy of its own, which is told.
// One that was not looked up is nobody's.
func TestSources(t *testing.T) {
	open, closed, local, other := planOf("open", rule.FailOpen, false), planOf("closed", rule.FailClosed, false), planOf("local", rule.FailLocal, false), planOf("other", rule.FailLocal, false)
	away := func([]terms.Call) error { return errors.New("the store is away") }
	remembers := func(calls []terms.Call) error {
		for i := range calls[0].Charges {
			calls[0].Charges[i].Allowed = true
		}
		calls[0].Charges[0].Result = terms.Result{RetryAfter: time.Hour, Recalled: true}
		return nil
	}
	var failed []string
	e := &Engine{Alone: memstate.NewStore(64), Events: silent(&observe.Observer{Failure: func(_ context.Context, ev observe.FailureEvent) {
		failed = append(failed, fmt.Sprint(ev.Rule, " ", ev.Policy))
	}})}
	for _, test := range []struct {
		take         func([]terms.Call) error
		plans        []*plan.Plan
		want, failed []string
		refused      bool
	}{
		{away, []*plan.Plan{open, local}, []string{"open true failure", "local true local"}, []string{"open open", "local local"}, false},
		{away, []*plan.Plan{open, local}, []string{"open true failure", "local false local"}, []string{"open open", "local local"}, false},
		{away, []*plan.Plan{closed, open, other}, []string{"closed true failure", "open true failure", "other true failure"}, []string{"closed closed", "open open", "other local"}, true},
		{away, []*plan.Plan{other}, []string{"other true local"}, []string{"other local"}, false},
		{remembers, []*plan.Plan{local, open}, []string{"local false recalled", "open true nobody"}, nil, false},
	} {
		failed, e.Store = nil, storeFunc{take: test.take}
		c, got := callOf(test.plans...), []string(nil)
		err := e.Ask(t.Context(), c)
		for i := range c.Tries {
			got = append(got, fmt.Sprint(c.Charges[i].Plan.Name, " ", c.Tries[i].Allowed, " ", sources[c.Tries[i].Source]))
		}
		if !slices.Equal(got, test.want) || !slices.Equal(failed, test.failed) || errors.Is(err, ErrUnavailable) != test.refused || !test.refused && err != nil {
			t.Errorf("got %q, failures %q, %v; want %q, %q, refused %v", got, failed, err, test.want, test.failed, test.refused)
		}
		c.Free()
	}
}

// Calls of two callers share requests, which the store refuses for the shadow limit of one. That
// comes to be left out nearly always, and the other one's is counted.
func TestRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enforced, guilty, innocent := planOf("enforced", rule.FailClosed, false), planOf("guilty", rule.FailOpen, true), planOf("innocent", rule.FailOpen, true)
		const calls = 36_000
		asked, counted := 0, 0
		e := &Engine{Events: silent(nil), Store: storeFunc{take: func(calls []terms.Call) error {
			refused := slices.ContainsFunc(calls, func(c terms.Call) bool {
				return slices.ContainsFunc(c.Charges, func(c terms.Charge) bool { return string(c.Key) == string(guilty.Whole) })
			})
			if refused {
				asked++
			}
			for _, call := range calls {
				for i := range call.Charges {
					c := &call.Charges[i]
					if refused && c.Shadow {
						c.Err = redistest.Reply("NOPERM this user has no permissions to access one of the keys used as arguments")
					} else {
						c.Allowed = true
						if c.Shadow {
							counted++
						}
					}
				}
			}
			return nil
		}}}
		for range calls {
			var each []*Call
			for _, shadow := range []*plan.Plan{guilty, innocent} {
				plans := []*plan.Plan{enforced, shadow}
				if e.PauseCause(shadow, clock.Now()) != nil {
					plans = plans[:1]
				}
				each = append(each, callOf(plans...))
			}
			for i, err := range e.DecideEach(t.Context(), each) {
				if each[i].Tries[0].Source != rule.SourceStore || err != nil {
					t.Fatalf("the enforced limit is decided by %s, %v", sources[each[i].Tries[0].Source], err)
				}
				each[i].Free()
			}
			time.Sleep(time.Second / 10)
		}
		if asked < 50 || asked > 200 || counted < calls*9/10 {
			t.Errorf("the store has refused %d requests in an hour, and counted %d of %d calls", asked, counted, calls)
		}
	})
}
