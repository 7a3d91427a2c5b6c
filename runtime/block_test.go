package runtime_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// testBlock wants a refusal by one replica to block the caller on all, whatever the cost of the
// next tries, until the key is reset by one. A cost that never fits blocks nobody.
func testBlock(t *testing.T, replica replicas) {
	one, other := replica(), replica()
	for name, rule := range blockingRules(10*time.Hour, 10) {
		t.Run(name, func(t *testing.T) {
			rule.Block = time.Hour
			limit := rule.Limit(key("k"))
			taken(t, one, limit.WithCost(8))
			if _, limited := refused(t, one, limit.WithCost(11)); limited.Blocked || limited.RetryAfter != runtime.Never {
				t.Fatalf("a cost that never fits: got %+v", limited)
			}
			taken(t, other, limit)
			blockedBy(t, one, limit.WithCost(5))
			last := rule.Block
			for _, limiter := range []*runtime.Limiter{other, one, other, one} {
				rest := blockedBy(t, limiter, limit).RetryAfter
				if rest > last || rest < last-time.Minute {
					t.Errorf("retry after %v, and %v before", rest, last)
				}
				last = min(rest+time.Second, rule.Block) // a refusal from memory is a trip older
			}
			for _, o := range other.TakeEach(t.Context(), limit, rule.Limit(key("another"))) {
				if blocked := o.Err != nil; blocked != o.Blocked || blocked != (o.RetryAfter > 0) {
					t.Errorf("each: got %+v", o)
				}
			}
			ok(t, one.Reset(t.Context(), limit))
			taken(t, one, limit.WithCost(10))
		})
	}
}

// TestBlockIsMet wants a replica that remembers a refusal of its own to learn of the
// block, and to tell its callers the rest of it from memory.
func TestBlockIsMet(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	one, other := onRedis(server.Client(t)), onRedis(server.Client(t))
	limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Block: 2 * time.Hour}).Limit(key("k"))
	taken(t, one, limit)
	begun := blockedBy(t, one, limit)
	for i, source := range []rule.Source{rule.SourceStore, rule.SourceRecalled, rule.SourceRecalled} {
		d, _ := refusedBy(t, other, source, limit)
		if !d.Blocked || d.RetryAfter > begun.RetryAfter || d.RetryAfter < begun.RetryAfter-time.Minute {
			t.Errorf("try %d: got %+v, want the block", i, d)
		}
	}
	server.Kill() // no longer there to say so, a caller still is blocked
	for range 3 {
		blockedBy(t, other, limit)
	}
}

// TestBlockAndOverrides wants a block to stay while the limit is changed, and a
// limit that is in shadow mode meanwhile to let everybody through.
func TestBlockAndOverrides(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, board := following(t, time.Second)
		limit := (&runtime.Rule{Name: "r", Window: time.Minute, Max: 2, Block: time.Hour}).Limit(key("k"))
		wantPassing(t, limiter, limit, 2, 2)
		blockedBy(t, limiter, limit)
		for _, o := range []rule.Override{{Max: new(int64(100))}, {Window: new(time.Millisecond)}} {
			board.put(overridesOf(o))
			blockedBy(t, limiter, limit)
		}
		board.put(overridesOf(rule.Override{Mode: new(runtime.ModeShadow)}))
		wantPassing(t, limiter, limit, 5, 5)
		board.put(runtime.Overrides{})
		equal(t, "retry after", blockedBy(t, limiter, limit).RetryAfter, time.Hour-4*time.Second)
	})
}

// TestBlockWhileLocal wants processes that decide alone to block too.
func TestBlockWhileLocal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := runtime.New(broken(), quiet, runtime.WithReplicas(2))
		limit := (&runtime.Rule{Name: "r", Window: time.Second, Max: 4, Block: time.Hour, Fail: runtime.FailLocal}).Limit(key("k"))
		wantPassing(t, limiter, limit, 2, 2)
		for i := range 3 {
			equal(t, fmt.Sprintf("try %d: retry after", i), blockedBy(t, limiter, limit).RetryAfter, time.Hour-time.Duration(i)*20*time.Minute)
			time.Sleep(20 * time.Minute)
		}
		taken(t, limiter, limit)
	})
}

// TestBlockIsReported wants events and the log to tell a block from a refusal.
func TestBlockIsReported(t *testing.T) {
	t.Parallel()
	var out lines
	var seen recorder[observe.DecisionEvent]
	limiter := inMemory(out.Logger(), observing(observe.Observer{Decision: withContext(seen.add)}))
	plain := &runtime.Rule{Name: "plain", Window: time.Hour, Max: 1}
	block := &runtime.Rule{Name: "block", Window: time.Hour, Max: 1, Block: time.Hour}
	ghost := &runtime.Rule{Name: "ghost", Window: time.Hour, Max: 1, Block: time.Hour, Mode: runtime.ModeShadow}
	for range 2 {
		for _, rule := range []*runtime.Rule{plain, block, ghost} {
			_, _ = limiter.Take(t.Context(), rule.Limit(nil))
		}
	}
	got := map[string]bool{}
	for _, ev := range seen.all()[3:] {
		got[ev.Rule] = ev.Blocked
		if ev.Verdict == observe.VerdictAdmitted {
			t.Errorf("got %+v, want it refused", ev)
		}
	}
	same(t, "blocked", map[string]bool{"plain": false, "block": true, "ghost": false}, got)
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "blocked=true") != strings.Contains(line, "rule=block ") {
			t.Errorf("a line of the log: %s", line)
		}
	}
}
