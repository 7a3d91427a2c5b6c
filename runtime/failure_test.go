package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// withoutStore returns limiters whose stores decide nothing.
func withoutStore(opts ...runtime.Option) map[string]*runtime.Limiter {
	opts = append([]runtime.Option{quiet}, opts...)
	return map[string]*runtime.Limiter{"broken store": runtime.New(broken(), opts...), "no store": runtime.New(nil, opts...)}
}

func TestFailurePolicies(t *testing.T) {
	t.Parallel()
	const fromRule = runtime.FailDefault
	for _, test := range []struct {
		name          string
		limiter, rule runtime.FailurePolicy
		admitted      int // of 4 calls on a max of 2
		err           error
		source        rule.Source
	}{
		{"default", fromRule, fromRule, 4, nil, rule.SourceFailure},
		{"open", runtime.FailOpen, fromRule, 4, nil, rule.SourceFailure},
		{"closed", runtime.FailClosed, fromRule, 0, runtime.ErrUnavailable, rule.SourceFailure},
		{"local", runtime.FailLocal, fromRule, 2, runtime.ErrLimited, rule.SourceLocal},
		{"the rule's open", runtime.FailClosed, runtime.FailOpen, 4, nil, rule.SourceFailure},
		{"the rule's closed", runtime.FailOpen, runtime.FailClosed, 0, runtime.ErrUnavailable, rule.SourceFailure},
		{"the rule's local", runtime.FailClosed, runtime.FailLocal, 2, runtime.ErrLimited, rule.SourceLocal},
	} {
		for name, limiter := range withoutStore(runtime.WithFailurePolicy(test.limiter)) {
			r := perHour(2)
			r.Fail = test.rule
			for i := range 4 {
				d, err := limiter.Take(t.Context(), r.Limit(key("k")))
				if want := i < test.admitted; (err == nil) != want || d.Allowed != want || d.Source != test.source || err != nil && !errors.Is(err, test.err) {
					t.Errorf("%s, %s: call %d: got %+v, %v, want admitted %v by %v, or %v", test.name, name, i, d, err, want, test.source, test.err)
				}
				if errors.Is(err, runtime.ErrUnavailable) && name == "broken store" && !errors.Is(err, errBroken) {
					t.Errorf("%s: %v does not wrap the store's error", test.name, err)
				}
			}
		}
	}
}

// What else is asked of a limiter without a store fails, but what this process counts is reset.
func TestBrokenStoreElsewhere(t *testing.T) {
	t.Parallel()
	ctx, limit := t.Context(), perHour(2).Limit(key("k"))
	for name, limiter := range withoutStore() {
		d, err := limiter.Peek(ctx, limit)
		wantError(t, name+": peek", err, runtime.ErrUnavailable)
		equal(t, name+": peek: allowed", d.Allowed, false)
		local := (&runtime.Rule{Name: "local", Window: time.Hour, Max: 2, Fail: runtime.FailLocal}).Limit(nil)
		wantPassing(t, limiter, local, 3, 2)
		if limiter.Reset(ctx, local) == nil {
			t.Errorf("%s: reset: no error", name)
		}
		wantPassing(t, limiter, local, 3, 2)
		wantError(t, name+": refund of nothing", limiter.Refund(ctx, runtime.Decision{}), nil)
		for _, o := range limiter.TakeEach(ctx, limit, limit) {
			if o.Err != nil || !o.Allowed || o.Source != rule.SourceFailure {
				t.Errorf("%s: take each: got %+v", name, o)
			}
		}
	}
}

// A call whose key could not be built is decided by its rule, whatever is to happen when the
// store fails: by default such calls share a budget, whose key is one like any other.
func TestInvalidKey(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	invalid := runtime.NewKey().AddString("t").AddInvalid("req.User is nil")
	for name, store := range map[string]runtime.Store{"memory": runtime.NewMemoryStore(), "redis": runtime.NewRedisStore(server.Client(t), patient)} {
		for _, fail := range []runtime.FailurePolicy{runtime.FailOpen, runtime.FailClosed, runtime.FailLocal} {
			for policy, want := range map[rule.InvalidKeyPolicy]struct {
				admitted  int
				err, look error // of further calls, and of what operators do
				told      []runtime.FailurePolicy
			}{
				rule.InvalidShare:  {2, runtime.ErrLimited, nil, nil},
				rule.InvalidRefuse: {0, runtime.ErrInvalidKey, runtime.ErrInvalidKey, slices.Repeat([]runtime.FailurePolicy{runtime.FailClosed}, 4)},
				rule.InvalidAdmit:  {4, nil, runtime.ErrInvalidKey, slices.Repeat([]runtime.FailurePolicy{runtime.FailOpen}, 4)},
			} {
				what := fmt.Sprint(name, " ", fail, " ", policy)
				var told []runtime.FailurePolicy
				limiter := runtime.New(store, quiet, runtime.WithFailurePolicy(fail), observing(observe.Observer{
					Failure: func(_ context.Context, ev observe.FailureEvent) {
						equal(t, what+": class", ev.Class.String(), "key")
						told = append(told, ev.Policy)
					},
				}))
				r := perHour(2)
				r.Name, r.Invalid, r.Hold = what, policy, true
				limit := r.Limit(invalid)
				for range want.admitted {
					taken(t, limiter, limit)
				}
				for range 4 - want.admitted {
					refusedAs(t, limiter, want.err, limit)
				}
				same(t, what+": events", want.told, told)
				taken(t, limiter, r.Limit(key("t")).WithCost(2)) // nobody else is concerned
				_, err := limiter.Peek(t.Context(), limit)
				wantError(t, what+": peek", err, want.look)
				wantError(t, what+": hold", limiter.Hold(t.Context(), limit, time.Second), want.look)
				wantError(t, what+": reset", limiter.Reset(t.Context(), limit), want.look)
				if policy == rule.InvalidShare {
					refunded(t, limiter, taken(t, limiter, limit))
					written, err := rule.ParseKey(invalid.String())
					ok(t, err)
					wantPassing(t, limiter, r.Limit(written), 4, 2) // by the name of the budget
					refused(t, limiter, limit)
					taken(t, limiter, r.Limit(runtime.NewKey().AddString("u").AddInvalid("nil")))
				}
				shadow := *r
				shadow.Name, shadow.Mode, shadow.Hold = what+" shadow", runtime.ModeShadow, false
				for range 4 {
					taken(t, limiter, shadow.Limit(invalid))
				}
			}
		}
	}
	for _, key := range []*runtime.Key{runtime.NewKey().AddString("").AddInvalid("nil"), runtime.NewKey().AddInvalid("nil").AddString("")} {
		refusing := *wide
		refusing.Invalid = rule.InvalidRefuse
		refusedAs(t, inMemory(), runtime.ErrInvalidKey, refusing.Limit(key)) // beside an empty part
	}
	// The other limits of the call still hold, and a max that nobody knows admits nobody.
	limiter, r := inMemory(), perHour(1)
	admits := *r
	admits.Name, admits.Invalid = "admits", rule.InvalidAdmit
	taken(t, limiter, admits.Limit(invalid), r.Limit(key("k")))
	refused(t, limiter, admits.Limit(invalid), r.Limit(key("k")))
	refusedAs(t, limiter, runtime.ErrInvalidKey, r.Limit(invalid).WithMax(0))
}

// That calls share a budget since their keys could not be built is in each of their decisions,
// and in the log once for each rule.
func TestInvalidKeyIsTold(t *testing.T) {
	t.Parallel()
	var out lines
	var flags []bool
	limiter := inMemory(out.Logger(), observing(observe.Observer{
		Decision: func(_ context.Context, ev observe.DecisionEvent) { flags = append(flags, ev.InvalidKey) },
	}))
	limit := perHour(9).Limit(runtime.NewKey().AddInvalid("#u is nil"))
	wantLeft(t, limiter, limit, 9)
	equal(t, "log of a look", out.String(), "")
	taken(t, limiter, limit)
	taken(t, limiter, perHour(9).Limit(key("k")))
	taken(t, limiter, limit)
	same(t, "told", []bool{true, false, true}, flags)
	if log := out.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "code=invalid_key") || !strings.Contains(log, "#u is nil") {
		t.Errorf("log %q", log)
	}
}

// While Redis is dead each process admits its share of a limit, whose numbers package plan has.
// A call that costs more takes all of the share, and gives all of it back.
func TestReplicasCost(t *testing.T) {
	t.Parallel()
	for _, algorithm := range algorithms {
		for name, limiter := range withoutStore(runtime.WithReplicas(3), runtime.WithFailurePolicy(runtime.FailLocal)) {
			limit := (&runtime.Rule{Name: "r", Window: 100 * time.Hour, Max: 9, Algorithm: algorithm}).Limit(nil)
			for range 3 {
				d := takenBy(t, limiter, rule.SourceLocal, limit.WithCost(9))
				equal(t, name+": limit and left", [2]int64{d.Limit, d.Remaining}, [2]int64{3, 0})
				if _, limited := refused(t, limiter, limit); errors.Is(limited, runtime.ErrCostExceedsLimit) {
					t.Errorf("%s, %v: a call after it: %v", name, algorithm, limited)
				}
				refunded(t, limiter, d)
			}
			wantPassing(t, limiter, limit, 10, 3)
			refusedAs(t, limiter, runtime.ErrCostExceedsLimit, limit.WithCost(10)) // which the whole limit never admits
		}
	}
}

// A call that waits for its share finds the same one when it looks again, and
// the whole limit when the store is back.
func TestReplicasWait(t *testing.T) {
	t.Parallel()
	for back, want := range map[bool]runtime.Decision{
		false: {Source: rule.SourceLocal, Limit: 3},
		true:  {Source: rule.SourceStore, Limit: 9, Remaining: 6},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := newFake()
			store.broken.Store(true)
			limiter := runtime.New(store, quiet, runtime.WithReplicas(3))
			limit := (&runtime.Rule{Name: "r", Window: time.Second, Max: 9, Wait: time.Minute, Fail: runtime.FailLocal}).Limit(nil)
			wantPassing(t, limiter, limit, 3, 3)
			if back {
				time.AfterFunc(time.Millisecond, func() { store.broken.Store(false) })
			}
			var d runtime.Decision
			equal(t, "time that the call waits", elapsed(func() { d = taken(t, limiter, limit.WithCost(3)) }), time.Second)
			if d.Source != want.Source || d.Limit != want.Limit || d.Remaining != want.Remaining {
				t.Errorf("the store is back %v: got %+v, want %+v", back, d, want)
			}
		})
	}
}

// The store decides again as soon as it can, by its own counts, and what was
// decided here can still be given back here.
func TestLocalHandsBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, store := onFake(runtime.WithReplicas(2), runtime.WithFailurePolicy(runtime.FailLocal))
		r := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4, Burst: 4, Algorithm: runtime.TokenBucket}
		take := func(source rule.Source, limit int64) runtime.Decision {
			t.Helper()
			store.broken.Store(source == rule.SourceLocal)
			d := takenBy(t, limiter, source, r.Limit(nil).WithCost(2))
			equal(t, "limit", d.Limit, limit)
			return d
		}
		take(rule.SourceStore, 4)
		d := take(rule.SourceLocal, 2)
		store.broken.Store(false)
		refunded(t, limiter, d)
		take(rule.SourceStore, 4)
		wantPassing(t, limiter, r.Limit(nil), 3, 0)
		take(rule.SourceLocal, 2)
		wantPassing(t, limiter, r.Limit(nil), 3, 0)
	})
}

// An override of a rule changes the share of it, each time.
func TestReplicasOverride(t *testing.T) {
	bubble(t, func(t *testing.T) {
		source := new(board)
		limiter := runtime.New(nil, quiet, runtime.WithReplicas(2), runtime.WithOverrides(source, time.Second), runtime.WithFailurePolicy(runtime.FailLocal))
		defer limiter.Close()
		r := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4, Burst: 6, Algorithm: runtime.TokenBucket}
		wantPassing(t, limiter, r.Limit(key("a")), 10, 3)
		source.put(overridesOf(rule.Override{Mode: new(runtime.ModeShadow)}))
		wantPassing(t, limiter, r.Limit(key("a")), 10, 10)
		source.put(overridesOf(rule.Override{Max: new(int64(0))}))
		wantPassing(t, limiter, r.Limit(key("b")), 10, 0)
	})
}

// A limiter in memory says so once where it is told of replicas.
func TestMemoryStoreOfReplicas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		store          runtime.Store
		replicas, want int
	}{{runtime.NewMemoryStore(), 1, 0}, {runtime.NewMemoryStore(), 3, 1}, {broken(), 3, 0}} {
		var out lines
		runtime.New(c.store, runtime.WithReplicas(c.replicas), out.Logger())
		equal(t, fmt.Sprintf("%T, %d replicas: lines", c.store, c.replicas), strings.Count(out.String(), "code=memory_store_replicas"), c.want)
	}
}
