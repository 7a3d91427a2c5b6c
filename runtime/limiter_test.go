package runtime_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

func TestInvalidLimit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	good := &runtime.Rule{Name: "good", Prefix: "good:", Window: time.Hour, Max: 5}
	limit := func(rule runtime.Rule) runtime.Limit { return rule.Limit(key("k")) }
	many := make([]runtime.Limit, runtime.MaxLimits+1)
	for i := range many {
		many[i] = good.Limit(runtime.NewKey().AddInt(int64(i)))
	}
	tests := map[string][]runtime.Limit{
		"cost -1 is negative":       {good.Limit(key("k")), good.Limit(key("l")).WithCost(-1)},
		"max -1 is negative":        {good.Limit(key("k")), good.Limit(key("l")).WithMax(-1)},
		"the maximum is 8":          many,
		"same prefix and key":       {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Prefix: "good:", Window: time.Minute, Max: 1})},
		"no rule":                   {good.Limit(key("k")), {}},
		"window 1µs":                {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Microsecond, Max: 1})},
		"window 8785h0m0s":          {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: 8785 * time.Hour, Max: 1})},
		"unknown algorithm":         {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Algorithm: 99})},
		"max 1000001 is":            {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Hour, Max: 1000001})},
		"maximum of a token-bucket": {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Hour, Max: runtime.MaxCount + 1, Algorithm: runtime.TokenBucket})},
		"142 years":                 {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Burst: runtime.MaxCount, Algorithm: runtime.TokenBucket})},
		"resolution":                {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Second, Max: 1, Resolution: time.Hour})},
		"buckets":                   {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Algorithm: runtime.SlidingCounter, Buckets: runtime.EqualBuckets(0)})},
		"wait -1s":                  {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Wait: -time.Second})},
	}
	for text, limits := range tests {
		for _, policy := range []runtime.FailurePolicy{runtime.FailOpen, runtime.FailClosed, runtime.FailLocal} {
			store := runtime.NewMemoryStore()
			limiter := runtime.New(store, quiet, runtime.WithFailurePolicy(policy))
			d, err := limiter.Take(ctx, limits...)
			if !errors.Is(err, runtime.ErrInvalidLimit) || d.Allowed || !strings.Contains(err.Error(), text) {
				t.Errorf("%s, %v: got %+v, %v", text, policy, d, err)
			}
			if _, err := limiter.Peek(ctx, limits...); !errors.Is(err, runtime.ErrInvalidLimit) {
				t.Errorf("%s, %v: peek: %v", text, policy, err)
			}
			wantLeft(t, limiter, good.Limit(key("k")), 5)
		}
	}
}

func TestCostZero(t *testing.T) {
	t.Parallel()
	store := &brokenStore{}
	limiter := runtime.New(store, quiet, runtime.WithFailurePolicy(runtime.FailClosed))
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1}
	for range 3 {
		d, err := limiter.Take(context.Background(), rule.Limit(nil).WithCost(0))
		if diff := cmp.Diff(runtime.Decision{Allowed: true}, d, cmp.AllowUnexported(runtime.Decision{})); err != nil || diff != "" {
			t.Errorf("got %v, %s", err, diff)
		}
	}
	// Even where nobody is admitted.
	taken(t, limiter, rule.Limit(nil).WithCost(0).WithMax(0))
	if n := store.takes.Load(); n != 0 {
		t.Errorf("the store was asked %d times", n)
	}
}

func TestCostExceedsLimit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 5, Message: "too dear", Wait: time.Hour}
	burst := &runtime.Rule{Name: "b", Prefix: "b:", Window: time.Hour, Max: 5, Burst: 2, Algorithm: runtime.TokenBucket}
	other := &runtime.Rule{Name: "o", Prefix: "o:", Window: time.Hour, Max: 5}
	store := runtime.NewMemoryStore()
	limiter := runtime.New(store, quiet)
	for name, limit := range map[string]runtime.Limit{
		"cost over max":   rule.Limit(nil).WithCost(6),
		"cost over burst": burst.Limit(nil).WithCost(3),
		"max 0":           rule.Limit(nil).WithMax(0),
		"burst and max 0": burst.Limit(nil).WithMax(0),
	} {
		d, err := limiter.Take(ctx, other.Limit(nil), limit)
		var limited *runtime.LimitedError
		if !errors.Is(err, runtime.ErrCostExceedsLimit) || !errors.Is(err, runtime.ErrLimited) || !errors.As(err, &limited) {
			t.Fatalf("%s: got %+v, %v", name, d, err)
		}
		if d.Allowed || d.RetryAfter != runtime.Never || limited.RetryAfter != runtime.Never || d.Source != runtime.SourceNone {
			t.Errorf("%s: got %+v, %+v", name, d, limited)
		}
		if strings.HasSuffix(name, "over max") && (limited.Error() != "too dear" || limited.Limit != 5 || limited.Rule != "r") {
			t.Errorf("%s: got %+v", name, limited)
		}
		if d, err := limiter.Peek(ctx, limit); err != nil || d.Allowed || d.RetryAfter != runtime.Never {
			t.Errorf("%s: peek: %+v, %v", name, d, err)
		}
	}
	wantLeft(t, limiter, other.Limit(nil), 5)
	// In shadow mode it is only reported.
	hidden := *rule
	hidden.Mode = runtime.ModeShadow
	if d, err := limiter.Take(ctx, hidden.Limit(nil).WithCost(6), other.Limit(nil)); err != nil || d.Remaining != 4 {
		t.Errorf("shadow: got %+v, %v", d, err)
	}
}

func TestKillSwitch(t *testing.T) {
	t.Parallel()
	var on atomic.Bool
	limiter := inMemory(runtime.WithEnabled(on.Load))
	limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 1}).Limit(nil)
	for _, turn := range []struct {
		on       bool
		admitted bool
	}{{false, true}, {false, true}, {true, true}, {true, false}, {false, true}, {true, false}} {
		on.Store(turn.on)
		_, err := limiter.Take(context.Background(), limit)
		outcome := limiter.TakeEach(context.Background(), limit.WithMax(1<<40).WithCost(0))[0]
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
	ctx := context.Background()
	var now atomic.Int64
	now.Store(century.UnixMicro())
	store := runtime.NewMemoryStore()
	store.SetClock(now.Load)
	limiter := runtime.New(store, quiet, runtime.WithNamespace("n"))
	second := &runtime.Rule{Name: "second", Prefix: "s:", Window: time.Second, Max: 2, Message: "slowly"}
	hour := &runtime.Rule{Name: "hour", Prefix: "h:", Window: time.Hour, Max: 3}
	limits := []runtime.Limit{second.Limit(key("k")), hour.Limit(key("k"))}
	for i, want := range []runtime.Decision{
		{Allowed: true, Rule: "second", Limit: 2, Remaining: 1, ResetAfter: time.Second},
		{Allowed: true, Rule: "second", Limit: 2, Remaining: 0, ResetAfter: time.Second},
		{Rule: "second", Limit: 2, Remaining: 0, RetryAfter: 900 * time.Millisecond, ResetAfter: time.Second},
	} {
		now.Add(int64(i%2) * 100_000)
		want.Source = runtime.SourceStore
		d, err := limiter.Take(ctx, limits...)
		if diff := cmp.Diff(want, d, cmpopts.IgnoreUnexported(runtime.Decision{})); diff != "" {
			t.Errorf("call %d (-want +got):\n%s", i, diff)
		}
		if i == 2 && (err == nil || err.Error() != "slowly") {
			t.Errorf("got error %v", err)
		}
	}
	// The error names the limit that keeps the caller out longest.
	now.Add(1_000_000)
	taken(t, limiter, limits...)
	now.Add(1)
	d, err := limiter.Take(ctx, limits[0].WithCost(2), limits[1])
	if err == nil || d.Rule != "hour" || err.Error() != runtime.DefaultMessage {
		t.Errorf("got %+v, %v", d, err)
	}
}

// Nothing at all is no reason to panic.
func TestEmptyCalls(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 100}
	capped := runtime.WithProcessCap(&runtime.Rule{Name: "process", Window: time.Hour, Max: 100})
	for name, limiter := range map[string]*runtime.Limiter{
		"memory": inMemory(), "capped": inMemory(capped),
		"broken": runtime.New(new(brokenStore), quiet, closed), "none": runtime.New(nil, quiet, closed, runtime.WithObserver(nil)),
	} {
		if d, err := limiter.Take(ctx); err != nil || !d.Allowed {
			t.Errorf("%s: take: %+v, %v", name, d, err)
		}
		if d, err := limiter.Peek(ctx); err != nil || !d.Allowed {
			t.Errorf("%s: peek: %+v, %v", name, d, err)
		}
		if outcomes := limiter.TakeEach(ctx); len(outcomes) != 0 {
			t.Errorf("%s: take each: %+v", name, outcomes)
		}
		if _, err := limiter.Take(ctx, runtime.Limit{}.WithCost(1)); !errors.Is(err, runtime.ErrInvalidLimit) {
			t.Errorf("%s: a limit without a rule: %v", name, err)
		}
		if err := limiter.Reset(ctx, runtime.Limit{}); !errors.Is(err, runtime.ErrInvalidLimit) {
			t.Errorf("%s: reset: %v", name, err)
		}
		d, _ := limiter.Take(ctx, rule.Limit(nil))
		many := make([]runtime.Limit, 2*runtime.MaxLimits)
		for i := range many {
			many[i] = rule.Limit(nil)
		}
		for _, limits := range [][]runtime.Limit{nil, {{}}, many} { // fewer, and more, than were charged
			if err := limiter.Refund(ctx, d, limits...); err != nil && !errors.Is(err, runtime.ErrNotCharged) {
				t.Errorf("%s: refund: %v", name, err)
			}
		}
	}
	store := runtime.NewMemoryStore()
	for _, calls := range [][]rawstore.Call{nil, {}, {{}}, {{}, {Charges: []rawstore.Charge{}}}} {
		ok(t, errors.Join(rawstore.On(store).Take(ctx, calls), rawstore.On(store).Peek(ctx, calls)))
	}
	ok(t, errors.Join(rawstore.On(store).Settle(ctx, nil), rawstore.On(store).Reset(ctx, nil)))
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
		{"wait {retry_after}", runtime.MaxWindow, "wait 8784h"},
		{"{retry_after}, then {retry_after}", 3 * time.Second, "3s, then 3s"},
		{"wait {retry_after}", runtime.Never, never},
		{"100% %s {} {retry_after", runtime.Never, "100% %s {} {retry_after"},
		{"", time.Second, ""},
	} {
		if got := runtime.MessageText(c.message, c.after); got != c.want {
			t.Errorf("%q after %v is %q, want %q", c.message, c.after, got, c.want)
		}
	}
	rule := &runtime.Rule{Name: "x", Window: time.Hour, Max: 0, Message: "wait {retry_after}"}
	if _, err := runtime.New(runtime.NewMemoryStore()).Take(t.Context(), rule.Limit(nil)); err == nil || err.Error() != never {
		t.Errorf("an error's text is %v", err)
	}
}

// TestLogCost refuses what would be too much work for Redis, and nothing else.
func TestLogCost(t *testing.T) {
	t.Parallel()
	const most = runtime.MaxLogCost
	log := runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: 10 * most}
	with := func(change func(*runtime.Rule)) *runtime.Rule {
		rule := log
		change(&rule)
		return &rule
	}
	small := with(func(r *runtime.Rule) { r.Max = most })
	for name, test := range map[string]struct {
		limit runtime.Limit
		want  error
	}{
		"the most":            {log.Limit(nil).WithCost(most), nil},
		"one more":            {log.Limit(nil).WithCost(most + 1), runtime.ErrInvalidLimit},
		"all of it":           {log.Limit(nil).WithCost(10 * most), runtime.ErrInvalidLimit},
		"more than all of it": {log.Limit(nil).WithCost(10*most + 1), runtime.ErrCostExceedsLimit},
		"more than a max":     {small.Limit(nil).WithCost(most + 1), runtime.ErrCostExceedsLimit},
		"a max of the call's": {small.Limit(nil).WithMax(most + 1).WithCost(most + 1), runtime.ErrInvalidLimit},
		"a max of 0":          {log.Limit(nil).WithMax(0).WithCost(most + 1), runtime.ErrCostExceedsLimit},
		"packed":              {with(func(r *runtime.Rule) { r.Storage = runtime.StoragePacked }).Limit(nil).WithCost(most + 1), runtime.ErrInvalidLimit},
		"slices":              {with(func(r *runtime.Rule) { r.Resolution = time.Second }).Limit(nil).WithCost(most + 1), runtime.ErrInvalidLimit},
		// A limit in the shadow is left out, and harms no call.
		"shadow":          {with(func(r *runtime.Rule) { r.Mode = runtime.ModeShadow }).Limit(nil).WithCost(most + 1), nil},
		"adaptive":        {with(func(r *runtime.Rule) { r.Adaptive = always(0.5) }).Limit(nil).WithCost(most + 1), runtime.ErrInvalidLimit},
		"counter":         {with(func(r *runtime.Rule) { r.Algorithm = runtime.SlidingCounter }).Limit(nil).WithCost(10 * most), nil},
		"layered counter": {with(func(r *runtime.Rule) { r.Algorithm, r.Buckets = runtime.SlidingCounter, runtime.LayeredBuckets(2, 2) }).Limit(nil).WithCost(10 * most), nil},
		"fixed window":    {with(func(r *runtime.Rule) { r.Algorithm = runtime.FixedWindow }).Limit(nil).WithCost(10 * most), nil},
		"bucket":          {with(func(r *runtime.Rule) { r.Algorithm = runtime.TokenBucket }).Limit(nil).WithCost(10 * most), nil},
		"queue":           {with(func(r *runtime.Rule) { r.Algorithm, r.Wait = runtime.LeakyBucket, time.Second }).Limit(nil).WithCost(10 * most), nil},
	} {
		limiter := inMemory()
		if _, err := limiter.Peek(t.Context(), test.limit); !errors.Is(err, test.want) && !errors.Is(test.want, runtime.ErrCostExceedsLimit) && name != "shadow" {
			t.Errorf("%s: peek: got %v, want %v", name, err, test.want)
		}
		if d, err := limiter.Take(t.Context(), test.limit); !errors.Is(err, test.want) || (err == nil) != d.Allowed {
			t.Errorf("%s: got %+v, %v, want %v", name, d, err, test.want)
		}
		limiter = inMemory()
		if o := limiter.TakeEach(t.Context(), test.limit)[0]; !errors.Is(o.Err, test.want) || (o.Err == nil) != o.Allowed {
			t.Errorf("%s, in a batch: got %+v, want %v", name, o, test.want)
		}
	}

	limiter := inMemory()
	_, err := limiter.Take(t.Context(), log.Limit(nil).WithMax(5000).WithCost(5000))
	const want = `invalid rate limit: rule "r": cost 5000 is above 250, the most that one call may charge to a sliding-log: ` +
		`count with a sliding-counter or a token-bucket, or charge it in several calls`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestLogCostOfScaled refuses a cost that fits only since the max was scaled up.
func TestLogCostOfScaled(t *testing.T) {
	t.Parallel()
	rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: runtime.MaxLogCost, Adaptive: always(2)}
	limiter := inMemory()
	defer limiter.Close()
	limit := rule.Limit(nil).WithCost(runtime.MaxLogCost + 1)
	if _, err := limiter.Take(t.Context(), limit); !errors.Is(err, runtime.ErrCostExceedsLimit) {
		t.Errorf("before it is scaled: got %v", err)
	}
	adapt(t, limiter, rule, 2)
	if _, err := limiter.Take(t.Context(), limit); !errors.Is(err, runtime.ErrInvalidLimit) {
		t.Errorf("scaled: got %v", err)
	}
}
