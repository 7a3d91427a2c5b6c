package runtime_test

import (
	"context"
	"errors"
	"testing"
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

// Each limit of a call has a policy of its own.
func TestFailurePoliciesMixed(t *testing.T) {
	t.Parallel()
	limiter := runtime.New(&brokenStore{}, quiet)
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
	if _, err := limiter.Take(context.Background(), open.Limit(nil), local.Limit(nil), closed.Limit(nil)); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("with a rule that fails closed: got %v", err)
	}
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
			if err := limiter.Refund(context.Background(), d, limit); err != nil {
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
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.New(nil).Refund(context.Background(), d, limit); err == nil {
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
		if err := limiter.Refund(context.Background(), runtime.Decision{}, limit); err != nil {
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
