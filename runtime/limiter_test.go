package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// A limit whose numbers cannot be is an error that says why, whatever the failure policy,
// and nothing is charged for a call with one. Package spec has the bounds of each option.
func TestInvalidLimit(t *testing.T) {
	t.Parallel()
	good := &runtime.Rule{Name: "good", Prefix: "good:", Window: time.Hour, Max: 5}
	many := make([]runtime.Limit, rule.MaxLimits+1)
	for i := range many {
		many[i] = good.Limit(runtime.NewKey().AddInt(int64(i)))
	}
	longer, sliced := *good, *good
	longer.Window, sliced.Resolution = 2*time.Hour, time.Second
	tests := map[string][]runtime.Limit{
		"cost -1 is negative":  {good.Limit(key("k")), good.Limit(key("l")).WithCost(-1)},
		"max -1 is negative":   {good.Limit(key("k")), good.Limit(key("l")).WithMax(-1)},
		"the maximum is 8":     many,
		"same prefix and key":  {good.Limit(key("k")), longer.Limit(key("k"))},
		"same prefix and key ": {good.Limit(key("k")), sliced.Limit(key("k"))},
		"no rule":              {good.Limit(key("k")), {}},
		"give it a Name":       {good.Limit(key("k")), (&runtime.Rule{Window: time.Hour, Max: 1}).Limit(nil)},
	}
	for text, r := range map[string]runtime.Rule{
		"window 1µs":                   {Window: time.Microsecond},
		"unknown algorithm":            {Algorithm: 99},
		"unknown ":                     {Mode: 44},
		"max 1000001 is":               {Max: 1000001},
		"142 years":                    {Burst: rule.MaxCount, Algorithm: runtime.TokenBucket},
		"resolution: 2h0m0s is longer": {Resolution: 2 * time.Hour},
		"buckets":                      {Algorithm: runtime.SlidingCounter, Buckets: rule.EqualBuckets(0)},
		"wait -1s":                     {Wait: -time.Second},
		"block: -1ns is not between":   {Block: -1},
		"remove block or wait":         {Block: time.Hour, Wait: time.Second},
		"hold: ":                       {Hold: true, Algorithm: runtime.Concurrency},
		"shorter than the window":      {Lease: time.Hour},
		"leave the window out":         {Algorithm: runtime.FixedWindow, Period: rule.Month, Window: time.Hour},
		"is not known here":            {Algorithm: runtime.FixedWindow, Period: rule.Month, Zone: "Mars/Olympus"},
		"all replicas know":            {Algorithm: runtime.FixedWindow, Period: rule.Month, Zone: "Local"},
		"no day of a month":            {Algorithm: runtime.FixedWindow, Period: rule.Month, Anchor: 32},
		"no weekday":                   {Algorithm: runtime.FixedWindow, Period: rule.Week, Anchor: 8},
		"no date of a year":            {Algorithm: runtime.FixedWindow, Period: rule.Year, Anchor: 230},
		"leave the anchor out":         {Algorithm: runtime.FixedWindow, Period: rule.Day, Anchor: 1},
		"set Period":                   {Algorithm: runtime.FixedWindow, Zone: "Europe/Berlin"},
		"unknown period":               {Algorithm: runtime.FixedWindow, Period: 9},
		"write window=day":             {Algorithm: runtime.FixedWindow, Keep: 1},
		"61 is not an integer between": {Algorithm: runtime.FixedWindow, Period: rule.Month, Keep: 61},
	} {
		r.Name, r.Max = "r", max(r.Max, 1)
		if r.Window == 0 && r.Period == rule.NoPeriod {
			r.Window = time.Hour
		}
		tests[text] = []runtime.Limit{good.Limit(key("k")), r.Limit(key("k"))}
	}
	for text, limits := range tests {
		for _, policy := range []runtime.FailurePolicy{runtime.FailOpen, runtime.FailClosed, runtime.FailLocal} {
			limiter := inMemory(runtime.WithFailurePolicy(policy))
			d, err := limiter.Take(t.Context(), limits...)
			if !errors.Is(err, runtime.ErrInvalidLimit) || d.Allowed || !strings.Contains(err.Error(), strings.TrimSpace(text)) {
				t.Errorf("%s, %v: got %+v, %v", text, policy, d, err)
			}
			_, err = limiter.Peek(t.Context(), limits...)
			wantError(t, text+": peek", err, runtime.ErrInvalidLimit)
			if len(limits) == 2 && !strings.HasPrefix(text, "same") {
				wantError(t, text+": take each", limiter.TakeEach(t.Context(), limits[1])[0].Err, runtime.ErrInvalidLimit)
			}
			wantLeft(t, limiter, good.Limit(key("k")), 5)
		}
	}
	for _, nameless := range []runtime.Limit{{}, (&runtime.Rule{Window: time.Hour, Max: 1}).Limit(nil)} {
		wantError(t, "reset", inMemory().Reset(t.Context(), nameless), runtime.ErrInvalidLimit)
	}
}

func TestCostZero(t *testing.T) {
	t.Parallel()
	store := new(brokenStore)
	limiter, limit := runtime.New(rawstore.New(store, nil), quiet, closed), perHour(1).Limit(nil).WithCost(0)
	for range 3 {
		d := takenBy(t, limiter, rule.SourceNone, limit)
		if !d.Allowed || d.Rule != "" {
			t.Errorf("got %+v", d)
		}
	}
	refusedAs(t, limiter, runtime.ErrCostExceedsLimit, limit.WithMax(0)) // where nobody is admitted
	equal(t, "times that the store was asked", store.takes.Load(), 0)
}

func TestCostExceedsLimit(t *testing.T) {
	t.Parallel()
	r := &runtime.Rule{Name: "r", Window: time.Hour, Max: 5, Message: "too dear", Wait: time.Hour}
	burst := &runtime.Rule{Name: "b", Window: time.Hour, Max: 5, Burst: 2, Algorithm: runtime.TokenBucket}
	other := (&runtime.Rule{Name: "o", Window: time.Hour, Max: 5}).Limit(nil)
	var out lines
	limiter := inMemory(out.Logger())
	for name, limit := range map[string]runtime.Limit{
		"cost over max":   r.Limit(nil).WithCost(6),
		"cost over burst": burst.Limit(nil).WithCost(3),
		"max 0":           r.Limit(nil).WithMax(0),
		"burst and max 0": burst.Limit(nil).WithMax(0),
	} {
		refusedAs(t, limiter, runtime.ErrCostExceedsLimit, other, limit)
		d, limited := refusedBy(t, limiter, rule.SourceNone, other, limit)
		wantError(t, name, limited, runtime.ErrLimited)
		equal(t, name+": retry after", d.RetryAfter, runtime.Never)
		if strings.HasSuffix(name, "over max") && (limited.Error() != "too dear" || limited.Limit != 5 || limited.Rule != "r") {
			t.Errorf("%s: got %+v", name, limited)
		}
		if d, err := limiter.Peek(t.Context(), limit); err != nil || d.Allowed || d.RetryAfter != runtime.Never {
			t.Errorf("%s: peek: %+v, %v", name, d, err)
		}
	}
	wantLeft(t, limiter, other, 5)
	if !strings.Contains(out.String(), "retry_after=never ") {
		t.Error(out.String())
	}
	// In shadow mode it is only reported.
	hidden := *r
	hidden.Mode = runtime.ModeShadow
	equal(t, "left beside a limit in shadow mode", taken(t, limiter, hidden.Limit(nil).WithCost(6), other).Remaining, 4)
}

func TestKillSwitch(t *testing.T) {
	t.Parallel()
	var on atomic.Bool
	limiter := inMemory(runtime.WithEnabled(on.Load))
	limit := perHour(1).Limit(nil)
	for _, turn := range []struct{ on, admitted bool }{{false, true}, {false, true}, {true, true}, {true, false}, {false, true}, {true, false}} {
		on.Store(turn.on)
		_, err := limiter.Take(t.Context(), limit)
		outcome := limiter.TakeEach(t.Context(), limit.WithMax(1<<40).WithCost(0))[0]
		if (err == nil) != turn.admitted || limiter.Enabled() != turn.on || turn.on != (outcome.Err != nil) {
			t.Errorf("%+v: got %v and %+v", turn, err, outcome)
		}
	}
	// Off means off: not even nonsense is an error.
	on.Store(false)
	taken(t, limiter, limit.WithCost(-1))
}

func TestDecision(t *testing.T) {
	t.Parallel()
	now := century
	limiter := runtime.New(runtime.NewMemoryStore(runtime.WithClock(func() time.Time { return now })), quiet, runtime.WithNamespace("n"))
	second := &runtime.Rule{Name: "second", Window: time.Second, Max: 2, Message: "slowly"}
	hour := &runtime.Rule{Name: "hour", Window: time.Hour, Max: 3}
	limits := []runtime.Limit{second.Limit(key("k")), hour.Limit(key("k"))}
	for i, want := range []runtime.Decision{
		{Allowed: true, Limit: 2, Remaining: 1, ResetAfter: time.Second},
		{Allowed: true, Limit: 2, Remaining: 0, ResetAfter: time.Second},
		{Limit: 2, Remaining: 0, RetryAfter: 900 * time.Millisecond, ResetAfter: time.Second},
	} {
		now = now.Add(time.Duration(i%2) * 100 * time.Millisecond)
		want.Rule, want.Source = "second", rule.SourceStore
		d, err := limiter.Take(t.Context(), limits...)
		same(t, fmt.Sprintf("call %d", i), want, d, cmpopts.IgnoreUnexported(runtime.Decision{}))
		if i == 2 && (err == nil || err.Error() != "slowly") {
			t.Errorf("got error %v", err)
		}
	}
	// The error names the limit that keeps the caller out longest.
	now = now.Add(time.Second)
	taken(t, limiter, limits...)
	now = now.Add(time.Microsecond)
	d, limited := refused(t, limiter, limits[0].WithCost(2), limits[1])
	equal(t, "refused by, and why", d.Rule+": "+limited.Error(), "hour: "+runtime.DefaultMessage)
}

// Nothing at all is no reason to panic.
func TestEmptyCalls(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	limiters := withoutStore(closed, runtime.WithObserver(nil))
	limiters["memory"] = inMemory()
	limiters["capped"] = inMemory(runtime.WithProcessCap(&runtime.Rule{Name: "process", Window: time.Hour, Max: 100}))
	for name, limiter := range limiters {
		taken(t, limiter)
		if d, err := limiter.Peek(ctx); err != nil || !d.Allowed {
			t.Errorf("%s: peek: %+v, %v", name, d, err)
		}
		equal(t, name+": outcomes of none", len(limiter.TakeEach(ctx)), 0)
		refusedAs(t, limiter, runtime.ErrInvalidLimit, runtime.Limit{}.WithCost(1))
		wantError(t, name+": reset", limiter.Reset(ctx, runtime.Limit{}), runtime.ErrInvalidLimit)
		d, _ := limiter.Take(ctx, perHour(100).Limit(nil))
		for _, n := range []int{0, 1, 2 * rule.MaxLimits} { // costs for more limits than there are
			if err := limiter.Settle(ctx, d, make([]int64, n)...); err != nil && n < 2 {
				t.Errorf("%s: settle: %v", name, err)
			}
		}
	}
	store := rawstore.On(runtime.NewMemoryStore())
	for _, calls := range [][]rawstore.Call{nil, {}, {{}}, {{}, {Charges: []rawstore.Charge{}}}} {
		ok(t, errors.Join(store.Take(ctx, calls), store.Peek(ctx, calls)))
	}
	ok(t, errors.Join(store.Settle(ctx, nil), store.Reset(ctx, nil)))
}

// A message tells the time to wait where it has the verb, rounded up and never 0, and
// everything else in it stays.
func TestMessageText(t *testing.T) {
	never := runtime.ErrCostExceedsLimit.Error()
	for _, c := range []struct {
		message string
		after   time.Duration
		want    string
	}{
		{"wait {retry_after}", 0, "wait 1s"},
		{"wait {retry_after}", time.Nanosecond, "wait 1s"},
		{"wait {retry_after}", time.Second + 1, "wait 2s"},
		{"wait {retry_after}", 59*time.Second + 1, "wait 1m"},
		{"wait {retry_after}", 90 * time.Second, "wait 1m30s"},
		{"wait {retry_after}", time.Hour, "wait 1h"},
		{"wait {retry_after}", time.Hour + time.Second, "wait 1h0m1s"},
		{"wait {retry_after}", 10 * time.Minute, "wait 10m"},
		{"wait {retry_after}", rule.MaxWindow, "wait 8784h"},
		{"{retry_after}, then {retry_after}", 3 * time.Second, "3s, then 3s"},
		{"wait {retry_after}", runtime.Never, never},
		{"100% %s {} {retry_after", runtime.Never, "100% %s {} {retry_after"},
		{"", time.Second, ""},
	} {
		equal(t, fmt.Sprintf("%q after %v", c.message, c.after), runtime.MessageText(c.message, c.after), c.want)
	}
	r := &runtime.Rule{Name: "x", Window: time.Hour, Max: 0, Message: "wait {retry_after}"}
	if _, err := runtime.New(runtime.NewMemoryStore()).Take(t.Context(), r.Limit(nil)); err == nil || err.Error() != never {
		t.Errorf("an error's text is %v", err)
	}
}
