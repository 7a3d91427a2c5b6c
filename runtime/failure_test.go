package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

func TestFailurePolicies(t *testing.T) {
	t.Parallel()
	const fromRule = runtime.FailDefault
	tests := []struct {
		name          string
		limiter, rule runtime.FailurePolicy
		admitted      int // of 4 calls on a max of 2
		err           error
		source        runtime.Source
	}{
		{"default", fromRule, fromRule, 4, nil, runtime.SourceFailure},
		{"open", runtime.FailOpen, fromRule, 4, nil, runtime.SourceFailure},
		{"closed", runtime.FailClosed, fromRule, 0, runtime.ErrUnavailable, runtime.SourceFailure},
		{"local", runtime.FailLocal, fromRule, 2, runtime.ErrLimited, runtime.SourceLocal},
		{"the rule's open", runtime.FailClosed, runtime.FailOpen, 4, nil, runtime.SourceFailure},
		{"the rule's closed", runtime.FailOpen, runtime.FailClosed, 0, runtime.ErrUnavailable, runtime.SourceFailure},
		{"the rule's local", runtime.FailClosed, runtime.FailLocal, 2, runtime.ErrLimited, runtime.SourceLocal},
	}
	for _, test := range tests {
		stores := map[string]*runtime.Limiter{
			"broken store": runtime.New(&brokenStore{}, quiet, runtime.WithFailurePolicy(test.limiter)),
			"no store":     runtime.New(nil, quiet, runtime.WithFailurePolicy(test.limiter)),
		}
		for name, limiter := range stores {
			t.Run(test.name+" "+name, func(t *testing.T) {
				rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 2, Fail: test.rule}
				for i := range 4 {
					d, err := limiter.Take(context.Background(), rule.Limit(key("k")))
					if want := i < test.admitted; (err == nil) != want || d.Allowed != want {
						t.Errorf("call %d: got %+v, %v, want admitted %v", i, d, err, want)
					}
					if err != nil && !errors.Is(err, test.err) {
						t.Errorf("call %d: got error %v, want %v", i, err, test.err)
					}
					if errors.Is(err, runtime.ErrUnavailable) && name == "broken store" && !errors.Is(err, errBroken) {
						t.Errorf("call %d: %v does not wrap the store's error", i, err)
					}
					if d.Source != test.source {
						t.Errorf("call %d: decided by %v, want %v", i, d.Source, test.source)
					}
				}
			})
		}
	}
}

// Each limit of a call has a policy of its own, and every one that the store did not decide
// is told of.
func TestFailurePoliciesMixed(t *testing.T) {
	t.Parallel()
	var seen recorder[runtime.FailureEvent]
	limiter := runtime.New(&brokenStore{}, quiet, observing(runtime.Observer{Failure: withContext(seen.add)}))
	rule := func(name string, fail runtime.FailurePolicy) *runtime.Rule {
		return &runtime.Rule{Name: name, Prefix: name + ":", Window: time.Hour, Max: 2, Fail: fail}
	}
	open, local, closed := rule("open", runtime.FailOpen), rule("local", runtime.FailLocal), rule("closed", runtime.FailClosed)
	for i := range 3 {
		d, err := limiter.Take(context.Background(), open.Limit(nil), local.Limit(nil))
		if (err == nil) != (i < 2) || d.Rule != "local" {
			t.Errorf("call %d: got %+v, %v", i, d, err)
		}
	}
	told := len(seen.all())
	if _, err := limiter.Take(context.Background(), closed.Limit(nil), open.Limit(nil), local.Limit(nil)); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("with a rule that fails closed: got %v", err)
	}
	var policies []string
	for _, ev := range seen.all()[told:] {
		policies = append(policies, ev.Rule+" "+ev.Policy.String())
	}
	same(t, "failures", []string{"closed closed", "open open", "local local"}, policies)
}

// Refunds of a local decision go to where it was made.
func TestRefundOfLocalDecision(t *testing.T) {
	t.Parallel()
	limit := (&runtime.Rule{Prefix: t.Name(), Window: time.Hour, Max: 2, Fail: runtime.FailLocal}).Limit(key("k")).WithCost(2)
	for name, limiter := range map[string]*runtime.Limiter{
		"broken": runtime.New(&brokenStore{}, quiet), "without a store": runtime.New(nil, quiet),
	} {
		for i := range 3 {
			d, err := limiter.Take(context.Background(), limit)
			if err != nil {
				t.Fatalf("%s: call %d: %v", name, i, err)
			}
			if err := limiter.Refund(context.Background(), d); err != nil {
				t.Errorf("%s: call %d: %v", name, i, err)
			}
		}
		_, _ = limiter.Take(context.Background(), limit)
		if err := limiter.Reset(context.Background(), limit); err == nil {
			t.Errorf("%s: reset without an error", name)
		}
		if _, err := limiter.Take(context.Background(), limit); err != nil {
			t.Errorf("%s: after a reset of this process: %v", name, err)
		}
	}
	// A decision of somebody else's store is not refunded without one.
	d, err := runtime.New(runtime.NewMemoryStore()).Take(context.Background(), limit)
	ok(t, err)
	if err := runtime.New(nil).Refund(context.Background(), d); err == nil {
		t.Error("refunded without a store")
	}
}

func TestBrokenStoreElsewhere(t *testing.T) {
	t.Parallel()
	limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 2}).Limit(key("k"))
	for _, limiter := range []*runtime.Limiter{runtime.New(nil, quiet), runtime.New(&brokenStore{}, quiet)} {
		if d, err := limiter.Peek(context.Background(), limit); !errors.Is(err, runtime.ErrUnavailable) || d.Allowed {
			t.Errorf("peek: got %+v, %v", d, err)
		}
		if err := limiter.Reset(context.Background(), limit); err == nil {
			t.Error("reset: no error")
		}
		if err := limiter.Refund(context.Background(), runtime.Decision{}); err != nil {
			t.Errorf("refund of nothing: %v", err)
		}
		for _, o := range limiter.TakeEach(context.Background(), limit, limit) {
			if o.Err != nil || !o.Allowed || o.Source != runtime.SourceFailure {
				t.Errorf("take each: got %+v", o)
			}
		}
	}
}

func TestInvalidKey(t *testing.T) {
	t.Parallel()
	invalid := runtime.NewKey().AddInvalid("req.User is nil")
	for _, test := range []struct {
		policy   runtime.FailurePolicy
		admitted int
		err      error
	}{
		{runtime.FailOpen, 4, nil},
		{runtime.FailClosed, 0, runtime.ErrInvalidKey},
		{runtime.FailLocal, 2, runtime.ErrLimited}, // one budget for all such keys
	} {
		rule := &runtime.Rule{Name: "r", Prefix: "p:", Window: time.Hour, Max: 2, Fail: test.policy}
		limiter := inMemory()
		for i := range 4 {
			d, err := limiter.Take(context.Background(), rule.Limit(invalid))
			if want := i < test.admitted; (err == nil) != want || d.Allowed != want || err != nil && !errors.Is(err, test.err) {
				t.Errorf("%v: call %d: got %+v, %v", test.policy, i, d, err)
			}
		}
		if _, err := limiter.Peek(context.Background(), rule.Limit(invalid)); !errors.Is(err, runtime.ErrInvalidKey) {
			t.Errorf("%v: peek: %v", test.policy, err)
		}
		if err := limiter.Reset(context.Background(), rule.Limit(invalid)); !errors.Is(err, runtime.ErrInvalidKey) {
			t.Errorf("%v: reset: %v", test.policy, err)
		}
	}
	for _, key := range []*runtime.Key{runtime.NewKey().AddString("").AddInvalid("nil"), runtime.NewKey().AddInvalid("nil").AddString("")} {
		if _, err := inMemory(closed).Take(t.Context(), wide.Limit(key)); !errors.Is(err, runtime.ErrInvalidKey) {
			t.Errorf("beside an empty part: %v", err)
		}
	}
	// The other limits of the call still hold.
	rule := &runtime.Rule{Name: "r", Prefix: "p:", Window: time.Hour, Max: 1}
	limiter := inMemory()
	for i := range 2 {
		_, err := limiter.Take(context.Background(), rule.Limit(invalid), rule.Limit(key("k")))
		if errors.Is(err, runtime.ErrLimited) != (i == 1) {
			t.Errorf("call %d beside an invalid key: %v", i, err)
		}
	}
}

// Processes that share a limit admit its max together while Redis is dead, and each of them
// its part, whose numbers package plan has.
func TestReplicasShareMax(t *testing.T) {
	t.Parallel()
	for _, algorithm := range algorithms {
		for _, test := range []struct{ max, burst, each int64 }{{31, 0, 10}, {2, 0, 1}, {60, 10, 3}} {
			rule := &runtime.Rule{Name: "r", Window: 100 * time.Hour, Max: test.max, Burst: test.burst, Algorithm: algorithm, Fail: runtime.FailLocal}
			if test.burst > 0 && !isBucket(rule) {
				continue
			}
			for range 3 {
				limiter := runtime.New(&brokenStore{}, quiet, runtime.WithReplicas(3))
				d, err := limiter.Take(t.Context(), rule.Limit(key("k")))
				if err != nil || d.Source != runtime.SourceLocal || d.Limit != test.each {
					t.Fatalf("%v, %+v: got %+v, %v", algorithm, test, d, err)
				}
				wantPassing(t, limiter, rule.Limit(key("k")), 40, int(test.each)-1)
			}
		}
	}
}

// A call that costs more than the share takes all of it, and gives all of it
// back.
func TestReplicasCost(t *testing.T) {
	t.Parallel()
	for _, algorithm := range algorithms {
		t.Run(algorithm.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				limiter := runtime.New(&brokenStore{}, quiet, runtime.WithReplicas(3), runtime.WithFailurePolicy(runtime.FailLocal))
				rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 9, Algorithm: algorithm}
				dear, cheap := rule.Limit(nil).WithCost(9), rule.Limit(nil)
				for range 3 {
					d, err := limiter.Take(t.Context(), dear)
					if err != nil || d.Remaining != 0 || d.Limit != 3 || d.Source != runtime.SourceLocal {
						t.Fatalf("got %+v, %v", d, err)
					}
					if _, err := limiter.Take(t.Context(), cheap); !errors.Is(err, runtime.ErrLimited) || errors.Is(err, runtime.ErrCostExceedsLimit) {
						t.Errorf("a call after it: %v", err)
					}
					refunded(t, limiter, d)
				}
				wantPassing(t, limiter, cheap, 10, 3)
				// What not even the whole limit admits stays hopeless.
				if _, err := limiter.Take(t.Context(), rule.Limit(nil).WithCost(10)); !errors.Is(err, runtime.ErrCostExceedsLimit) {
					t.Errorf("cost over max: %v", err)
				}
			})
		})
	}
}

// A call that waits for its share finds the same one when it looks again, and
// the whole limit when the store is back.
func TestReplicasWait(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		t.Run(fmt.Sprint("store back ", back), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFake()
				store.broken.Store(true)
				limiter := runtime.New(store, quiet, runtime.WithReplicas(3))
				rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 9, Wait: time.Minute, Fail: runtime.FailLocal}
				wantPassing(t, limiter, rule.Limit(nil), 3, 3)
				begin := time.Now()
				if back {
					time.AfterFunc(time.Millisecond, func() { store.broken.Store(false) })
				}
				d, err := limiter.Take(t.Context(), rule.Limit(nil).WithCost(3))
				if took := time.Since(begin); err != nil || took != time.Second {
					t.Errorf("got %+v, %v after %v, want 1s", d, err, took)
				}
				want := runtime.Decision{Source: runtime.SourceLocal, Limit: 3}
				if back {
					want = runtime.Decision{Source: runtime.SourceStore, Limit: 9, Remaining: 6}
				}
				if d.Source != want.Source || d.Limit != want.Limit || d.Remaining != want.Remaining {
					t.Errorf("got %+v, want %+v", d, want)
				}
			})
		})
	}
}

// The store decides again as soon as it can, by its own counts, and what was
// decided here can still be given back here.
func TestLocalHandsBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newFake()
		limiter := runtime.New(store, quiet, runtime.WithReplicas(2), runtime.WithFailurePolicy(runtime.FailLocal))
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4, Burst: 4, Algorithm: runtime.TokenBucket}
		take := func(want runtime.Source, limit int64) runtime.Decision {
			t.Helper()
			d, err := limiter.Take(t.Context(), rule.Limit(nil).WithCost(2))
			if err != nil || d.Source != want || d.Limit != limit {
				t.Fatalf("got %+v, %v, want %v with a limit of %d", d, err, want, limit)
			}
			return d
		}
		take(runtime.SourceStore, 4)
		store.broken.Store(true)
		d := take(runtime.SourceLocal, 2)
		store.broken.Store(false)
		refunded(t, limiter, d)
		take(runtime.SourceStore, 4)
		wantPassing(t, limiter, rule.Limit(nil), 3, 0)
		store.broken.Store(true)
		take(runtime.SourceLocal, 2)
		wantPassing(t, limiter, rule.Limit(nil), 3, 0)
	})
}

// An override of a rule changes the share of it, each time.
func TestReplicasOverride(t *testing.T) {
	bubble(t, func(t *testing.T) {
		source := new(board)
		limiter := runtime.New(nil, quiet, runtime.WithReplicas(2), runtime.WithOverrides(source, time.Second), runtime.WithFailurePolicy(runtime.FailLocal))
		defer limiter.Close()
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4, Burst: 6, Algorithm: runtime.TokenBucket}
		wantPassing(t, limiter, rule.Limit(key("a")), 10, 3)
		source.put(one(runtime.Override{Mode: new(runtime.ModeShadow)}))
		wantPassing(t, limiter, rule.Limit(key("a")), 10, 10)
		source.put(one(runtime.Override{Max: new(int64(0))}))
		wantPassing(t, limiter, rule.Limit(key("b")), 10, 0)
	})
}

// A limiter in memory says so once where it is told of replicas.
func TestMemoryStoreOfReplicas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		store    runtime.Store
		replicas int
		warns    int
	}{
		{runtime.NewMemoryStore(), 1, 0},
		{runtime.NewMemoryStore(), 3, 1},
		{&brokenStore{}, 3, 0},
	} {
		var log bytes.Buffer
		runtime.New(c.store, runtime.WithReplicas(c.replicas), runtime.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		equal(t, fmt.Sprintf("%T, %d replicas: lines", c.store, c.replicas), strings.Count(log.String(), "code=memory_store_replicas"), c.warns)
	}
}
