package runtime

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func (t *planTable) planned() (n int) {
	if slots := t.slots.Load(); slots != nil {
		for i := range *slots {
			if (*slots)[i].Load() != nil {
				n++
			}
		}
	}
	return n
}

// TestPlans has a limiter meet more rules and maxima than it keeps plans for. The
// plans are bounded, each rule has its own, and new ones find a place in time.
func TestPlans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter := New(NewMemoryStore(), silent)
		rules := make([]Rule, 100)
		for i := range rules {
			rules[i] = Rule{Name: "r", Window: time.Hour, Max: 1, Algorithm: FixedWindow}
		}
		for max := range int64(100) {
			for i := range rules {
				limit := rules[i].Limit(NewKey().AddInt(max).AddInt(int64(i))).WithMax(max + 1)
				if d, err := limiter.Take(context.Background(), limit); err != nil || d.Limit != max+1 || d.Remaining != max {
					t.Fatalf("rule %d, max %d: got %+v, %v", i, max+1, d, err)
				}
			}
		}
		if n := limiter.plans.planned(); n < maxPlans/2 || n > maxPlans {
			t.Errorf("%d plans, want at most %d", n, maxPlans)
		}
		late := &Rule{Name: "late", Window: time.Hour, Max: 1}
		time.Sleep(planStays)
		limit := late.Limit(nil)
		if p := limiter.planOf(&limit); p == nil || p.rule != late {
			t.Errorf("no plan for a new rule when the others are old: %+v", p)
		}
	})
}

// TestPlansFound has callers at the same time ask for plans while their table grows.
func TestPlansFound(t *testing.T) {
	t.Parallel()
	limiter := New(NewMemoryStore(), silent, WithNamespace("ns"))
	rules := make([]Rule, 10*minPlans)
	for i := range rules {
		rules[i] = Rule{Prefix: "p:", Window: time.Hour, Max: int64(i + 1), Algorithm: TokenBucket}
	}
	find := func(i int) *plan {
		limit := rules[i].Limit(nil)
		p := limiter.planOf(&limit)
		if p != nil && (p.rule != &rules[i] || p.max != int64(i+1) || p.capacity != int64(i+1) || p.start != "ns:p:" || p.tag != "%token") {
			t.Errorf("rule %d has the plan %+v", i, p)
		}
		return p
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range rules {
				find(i)
			}
		})
	}
	all.Wait()
	for i := range rules {
		if p := find(i); p == nil || find(i) != p {
			t.Errorf("rule %d is planned anew", i)
		}
	}
}

// TestPlanTakes says which limits the fast path takes.
func TestPlanTakes(t *testing.T) {
	t.Parallel()
	bucket := Rule{Name: "r", Window: time.Hour, Max: 1000, Burst: 300, Algorithm: TokenBucket}
	log := Rule{Name: "r", Window: time.Hour, Max: 1000}
	with := func(r Rule, change func(*Rule)) *Rule { change(&r); return &r }
	key := func(n int) *Key { return NewKey().AddBytes(make([]byte, n)) }
	for name, test := range map[string]struct {
		limit Limit
		want  bool
	}{
		"bucket":            {bucket.Limit(nil), true},
		"all of a burst":    {bucket.Limit(nil).WithCost(300), true},
		"more than a burst": {bucket.Limit(nil).WithCost(301), false},
		"log":               {log.Limit(nil).WithCost(MaxLogCost), true},
		"much of a log":     {log.Limit(nil).WithCost(MaxLogCost + 1), false},
		"nothing":           {bucket.Limit(nil).WithCost(0), false},
		"less than nothing": {bucket.Limit(nil).WithCost(-1), false},
		"a max of 0":        {log.Limit(nil).WithMax(0), false},
		"a negative max":    {log.Limit(nil).WithMax(-1), false},
		"a key":             {log.Limit(key(inlineKey / 3)), true},
		"a long key":        {log.Limit(key(inlineKey)), false},
		"a long prefix":     {with(log, func(r *Rule) { r.Prefix = string(make([]byte, fastKey-4)) }).Limit(NewKey().AddString("12345")), false},
		"a prefix":          {with(log, func(r *Rule) { r.Prefix = string(make([]byte, fastKey-4)) }).Limit(NewKey().AddString("1234")), true},
		"an invalid key":    {log.Limit(NewKey().AddInvalid("it is nil")), false},
		"wait":              {with(log, func(r *Rule) { r.Wait = 1 }).Limit(nil), false},
		"shadow":            {with(log, func(r *Rule) { r.Mode = Shadow }).Limit(nil), false},
		"an invalid rule":   {with(log, func(r *Rule) { r.Window = 1 }).Limit(nil), false},
	} {
		limiter := New(NewMemoryStore(), silent)
		if p := limiter.planOf(&test.limit); p == nil || p.takes(&test.limit) != test.want {
			t.Errorf("%s: got %+v", name, p)
		}
	}
	limiter := New(NewMemoryStore(), silent)
	if p := limiter.planOf(new(Limit)); p != nil {
		t.Errorf("no rule: got %+v", p)
	}
	if _, err := limiter.Take(context.Background(), Limit{}); !errors.Is(err, ErrInvalidLimit) {
		t.Errorf("no rule: %v", err)
	}
}

// TestPlansOfOverrides changes overrides a thousand times. The plans of rules that are
// no longer in force are let go.
func TestPlansOfOverrides(t *testing.T) {
	t.Parallel()
	l := New(NewMemoryStore(), silent, WithOverrides(OverrideFunc(func(context.Context) (Overrides, error) { return Overrides{}, nil }), time.Hour))
	defer l.Close()
	rule := &Rule{Name: "r", Window: time.Hour, Max: 1_000_000}
	for i := range int64(1000) {
		if err := l.override(Overrides{Rules: map[string]Override{"r": {Max: new(i + 1)}}}, false); err != nil {
			t.Fatal(err)
		}
		_, _ = l.Take(t.Context(), rule.Limit(nil))
	}
	if plans := l.plans.planned(); plans != 1 {
		t.Errorf("%d plans are kept for one rule", plans)
	}
}
