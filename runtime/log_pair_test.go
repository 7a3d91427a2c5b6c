package runtime_test

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
)

// logRules holds a rule for every way of keeping a log.
func logRules(window time.Duration, max int64) map[string]*runtime.Rule {
	rules := serverRules(window, max)
	for name, rule := range rules {
		if rule.Algorithm != runtime.SlidingLog {
			delete(rules, name)
		}
	}
	return rules
}

// A log is one key of a limit that is charged both in memory and in Redis at the
// same times.
type log struct {
	testing.TB
	client  *redis.Client
	key     string
	memory  *runtime.MemoryStore
	subject storetest.Subject
}

func newLog(t *testing.T, client *redis.Client, rule *runtime.Rule) *log {
	subject := injected(t, client, nil)
	l := &log{t, client, storetest.Prefix(t), runtime.NewMemoryStore(), subject}
	l.memory.SetClock(subject.Now)
	return l
}

// decide wants both stores to say the same, and returns it.
func (l *log) decide(do func(rawstore.Store, context.Context, []rawstore.Call) error, rule *runtime.Rule, cost int64) terms.Result {
	l.Helper()
	var results []terms.Result
	for _, store := range []runtime.Store{l.memory, l.subject.Store} {
		calls := single(rule, l.key, cost)
		if err := do(rawstore.On(store), l.Context(), calls); err != nil || calls[0].Err != nil {
			l.Fatal(err, calls[0].Err)
		}
		results = append(results, calls[0].Charges[0].Result)
	}
	if results[0] != results[1] {
		l.Fatalf("cost %d: in memory %+v, in Redis %+v", cost, results[0], results[1])
	}
	return results[0]
}

// take wants a charge to be admitted and to leave so much.
func (l *log) take(rule *runtime.Rule, cost, left int64) terms.Result {
	l.Helper()
	r := l.decide(rawstore.Store.Take, rule, cost)
	if !r.Allowed || r.Remaining != left {
		l.Fatalf("cost %d: got %+v, want %d left", cost, r, left)
	}
	return r
}

// peek returns what a call would find.
func (l *log) peek(rule *runtime.Rule, cost int64) terms.Result {
	l.Helper()
	return l.decide(rawstore.Store.Peek, rule, cost)
}

// refund gives back what was charged at a time.
func (l *log) refund(rule *runtime.Rule, cost, at int64) {
	l.Helper()
	charges := []rawstore.Charge{{Rule: rule, Key: []byte(l.key), Max: rule.Max, Cost: cost, Result: terms.Result{At: at}}}
	if err := errors.Join(rawstore.On(l.memory).Settle(l.Context(), charges), rawstore.On(l.subject.Store).Settle(l.Context(), charges)); err != nil {
		l.Fatal(err)
	}
}

// stored returns how many events the key holds, with those that have left.
func (l *log) stored(rule *runtime.Rule) int64 {
	if rule.Storage == runtime.StoragePacked {
		return packedLen(l, l.client, l.key)
	}
	return l.client.ZCard(l.Context(), l.key).Val()
}

// fill charges n events, at most of the largest cost at once, a microsecond
// after each other.
func (l *log) fill(rule *runtime.Rule, n int64) {
	l.Helper()
	for left := n; left > 0; left -= runtime.MaxLogCost {
		cost := min(left, runtime.MaxLogCost)
		l.decide(rawstore.Store.Take, rule, cost)
		l.subject.Advance(time.Microsecond)
	}
}

// commands returns how often Redis executed each command during do.
func (l *log) commands(do func()) map[string]int {
	l.Helper()
	l.client.ConfigResetStat(l.Context())
	do()
	count := map[string]int{}
	info := l.client.Info(l.Context(), "commandstats").Val()
	for _, m := range regexp.MustCompile(`cmdstat_(\w+):calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		count[m[1]], _ = strconv.Atoi(m[2])
	}
	return count
}
