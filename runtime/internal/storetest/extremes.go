package storetest

import (
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

func longestWindow(t *trial) {
	t.rule.Window = rule.MaxWindow
	c := t.charge("k", 10)
	charged := t.admit(c, 0)
	leave := t.leaves(c, charged)
	denied, after, before := t.timed(c)
	if retry := denied.RetryAfter.Microseconds(); denied.Allowed || retry < leave-before || retry > leave-after {
		t.Errorf("got %+v, want a retry from %d to %d µs", denied, leave-before, leave-after)
	}
}

func longestWindowEnds(t *trial) {
	t.rule.Window = rule.MaxWindow
	c := t.charge("k", 10)
	for range 2 {
		t.Advance(12345 * time.Microsecond)
		t.admit(c, 0)
		r := t.deny(c, 0)
		t.Advance(r.RetryAfter - time.Microsecond)
		if early := t.peek(c)[0]; early.Allowed {
			t.Errorf("1 µs before the end: %+v", early)
		}
		t.Advance(time.Microsecond)
	}
}

func largeCost(t *trial) {
	largest := int64(10_000)
	if isLog(&t.rule) {
		largest = rule.MaxLogCost
	}
	t.rule.Max = 2 * largest
	t.rule.Window = rule.MaxWindow // so that a bucket drains less than one in a test
	c := t.charge("k", largest)
	first := t.admit(c, largest)
	t.Advance(20 * time.Millisecond) // into another slice
	second := t.admit(c, 0)
	t.deny(c, 0)
	if isQueue(&t.rule) {
		first = second // nobody is behind it
	}
	t.refund(c, first)
	t.left("k", largest)
	t.admit(t.charge("k", largest-1), 1)
}

func largeMax(t *trial) {
	const most = rule.MaxCount
	t.rule.Max = most
	t.rule.Window = rule.MaxWindow // so that a bucket drains less than one in a test
	slack := int64(0)
	if isBucket(&t.rule) && !t.Exact {
		slack = most / 1000
	}
	near := func(got, want int64) {
		t.Helper()
		if got < want || got > want+slack {
			t.Errorf("got %d left, want %d", got, want)
		}
	}
	near(t.take(t.charge("k", 1))[0].Remaining, most-1)
	r := t.take(t.charge("k", most-slack-1))[0]
	near(r.Remaining, slack)
	if !r.Allowed {
		t.Fatalf("got %+v, want it admitted", r)
	}
	denied := t.take(t.charge("k", most))[0]
	if denied.Allowed || denied.RetryAfter <= 0 {
		t.Errorf("got %+v, want it denied", denied)
	}
	t.refund(t.charge("k", most-slack-1), r)
	near(t.peek(t.charge("k", 1))[0].Remaining, most-1)
	whole := t.charge("whole", most)
	if r := t.take(whole)[0]; !r.Allowed || r.Remaining != 0 {
		t.Errorf("got %+v, want all of it admitted", r)
	}
}

// ids wants no two callers to share a limit, whatever they are called.
func ids(t *trial) {
	t.rule.Prefix = Prefix(t.T)
	t.rule.Max = 2
	limiter := runtime.New(t.Store, runtime.WithFailurePolicy(runtime.FailClosed), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	keys := []*runtime.Key{runtime.NewKey(), runtime.NewKey().AddString("a").AddString("b"), runtime.NewKey().AddString("").AddString("")}
	for _, id := range []string{
		"}x", "{a}b", "*", "a", "{a}", "%7Ba%7D", ":", "a:b", "\x00", "\n", "%", "%packed", "é",
		strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20-1) + "y", strings.Repeat("{", 1<<20),
	} {
		keys = append(keys, runtime.NewKey().AddString(id))
	}
	for round := range int64(3) {
		for _, key := range keys {
			d, err := limiter.Take(t.Context(), t.rule.Limit(key))
			if round < 2 && err != nil || round == 2 && !errors.Is(err, runtime.ErrLimited) {
				t.Errorf("key %.20q: got %+v, %v in round %d", key, d, err, round)
			}
			if d.Remaining != max(0, 1-round) {
				t.Errorf("key %.20q: %d left in round %d", key, d.Remaining, round)
			}
		}
	}
	// The key of an empty id is that of no id at all: a rule has one or the other.
	d, err := limiter.Peek(t.Context(), t.rule.Limit(runtime.NewKey().AddString("")))
	if err != nil || d.Remaining != 0 {
		t.Errorf("empty id: got %+v, %v", d, err)
	}
}

// slowDrain wants a limit that was lowered a million million times over to deny for years, and
// neither to overflow nor to look for the end step by step.
func slowDrain(t *trial) {
	t.rule.Window = rule.MaxWindow
	t.rule.Max = rule.MaxCount
	t.admit(t.charge("k", rule.MaxCount), 0)
	for _, max := range []int64{1, 3, 1000, 1_000_003} {
		c := t.charge("k", 1)
		c.Max = max
		if r := t.deny(c, 0); r.RetryAfter < 100*24*time.Hour || r.ResetAfter < r.RetryAfter {
			t.Errorf("max %d: got %+v, want a retry after years", max, r)
		}
	}
}
