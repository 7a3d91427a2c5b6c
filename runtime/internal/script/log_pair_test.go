package script_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redisclock"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// logRules holds a rule for every way of keeping a log.
func logRules(window time.Duration, max int64) map[string]*runtime.Rule {
	rules := storetest.WaysOf(window, max)
	maps.DeleteFunc(rules, func(_ string, r *runtime.Rule) bool { return r.Algorithm != runtime.SlidingLog })
	return rules
}

// A log is one key of a limit that is charged both in memory and in Redis at the same times.
type log struct {
	testing.TB
	client  *redis.Client
	key     string
	memory  *memstate.Store
	subject documents.Subject
}

func newLog(t *testing.T, client *redis.Client) *log {
	subject := injected(t, client, nil)
	l := &log{t, client, documents.Prefix(t), memstate.NewStore(1000), subject}
	l.memory.Clock = subject.Now
	return l
}

// eachLog tries a log of each rule for which only is true, or of all.
func eachLog(t *testing.T, rules map[string]*runtime.Rule, only func(*runtime.Rule) bool, try func(*testing.T, *log, *runtime.Rule)) {
	t.Helper()
	client := redistest.Start(t).Client(t)
	for name, rule := range rules {
		if only == nil || only(rule) {
			t.Run(name, func(t *testing.T) { try(t, newLog(t, client), rule) })
		}
	}
}

func isCounter(r *runtime.Rule) bool { return r.Algorithm == runtime.SlidingCounter }

// lives returns how long the key lives.
func (l *log) lives() time.Duration {
	return redisclock.ExpireTime(l.Context(), l.client, l.key) - time.Duration(l.subject.Now())*time.Microsecond
}

// decide wants both stores to say the same, and returns it.
func (l *log) decide(do storetest.Operation, rule *runtime.Rule, cost int64) terms.Result {
	l.Helper()
	var results []terms.Result
	for _, store := range []runtime.Store{rawstore.New(l.memory, nil), l.subject.Store} {
		results = append(results, must(l, store, do, single(rule, l.key, cost)).Result)
	}
	if results[0] != results[1] {
		l.Fatalf("cost %d: in memory %+v, in Redis %+v", cost, results[0], results[1])
	}
	return results[0]
}

// take wants a charge to be admitted and to leave so much.
func (l *log) take(rule *runtime.Rule, cost, left int64) terms.Result {
	l.Helper()
	r := l.decide(take, rule, cost)
	if !r.Allowed || r.Remaining != left {
		l.Fatalf("cost %d: got %+v, want %d left", cost, r, left)
	}
	return r
}

// peek returns what a call would find.
func (l *log) peek(rule *runtime.Rule, cost int64) terms.Result {
	l.Helper()
	return l.decide(peek, rule, cost)
}

// stored returns how many events the key holds, with those that have left.
func (l *log) stored(rule *runtime.Rule) int64 {
	if rule.Storage == runtime.StoragePacked {
		return packedLen(l, l.client, l.key)
	}
	return l.client.ZCard(l.Context(), l.key).Val()
}

// fill charges n events, at most of the largest cost at once, a microsecond after each other.
func (l *log) fill(r *runtime.Rule, n int64) {
	l.Helper()
	for left := n; left > 0; left -= rule.MaxLogCost {
		cost := min(left, rule.MaxLogCost)
		l.decide(take, r, cost)
		l.subject.Advance(time.Microsecond)
	}
}

// commands returns how often Redis executed each command during do.
func (l *log) commands(do func()) map[string]int {
	l.Helper()
	return commandsOf(l, l.client, do)
}

// How a packed log is laid out, see sliding_log_packed.lua.
const (
	packedNumber = 7
	packedEnds   = 8                                        // how many events there are at most before and behind the ring
	packedHeader = 8 + 14                                   // of a long log
	packedSlots  = packedHeader + 2*packedEnds*packedNumber // where its slots begin
)

// appendPacked appends a number as the script writes it.
func appendPacked(b []byte, n int64) []byte {
	var eight [8]byte
	binary.BigEndian.PutUint64(eight[:], uint64(n))
	return append(b, eight[1:]...)
}

// packedLog returns a log of events, with so many slots more than it needs: -1 for
// one that is not long.
func packedLog(events []int64, spare int) []byte {
	if spare < 0 {
		b := make([]byte, 8)
		for _, at := range events {
			b = appendPacked(b, at)
		}
		return b
	}
	used := len(events) - packedEnds - 1
	size := used + spare
	b := make([]byte, packedSlots+size*packedNumber)
	b[0] = 1
	for i, n := range []int{size, spare, used} {
		binary.BigEndian.PutUint32(b[8+4*i:], uint32(n))
	}
	b[20], b[21] = packedEnds, 1
	appendPacked(b[:packedHeader], events[len(events)-1])
	for i, at := range events[:packedEnds] {
		appendPacked(b[:packedSlots-(packedEnds-i)*packedNumber], at)
	}
	for i, at := range events[packedEnds : len(events)-1] {
		appendPacked(b[:packedSlots+(spare+i)%size*packedNumber], at)
	}
	return b
}

// packedLen returns how many events a key holds, by its header if that says so.
func packedLen(tb testing.TB, client redis.Cmdable, key string) int64 {
	tb.Helper()
	value, err := client.Get(context.Background(), key).Bytes()
	if errors.Is(err, redis.Nil) {
		return 0
	}
	if err == nil && len(value)%packedNumber == 1 && value[0] == 0 {
		return int64(len(value)-8) / packedNumber
	}
	if err != nil || len(value) <= packedSlots || value[0] != 1 || int(binary.BigEndian.Uint32(value[8:]))*packedNumber != len(value)-packedSlots {
		tb.Fatalf("%q is no packed log: %v", key, err)
	}
	return int64(value[20]) + int64(binary.BigEndian.Uint32(value[16:])) + int64(value[21])
}

// TestPackedBytes wants servers with and without Lua's struct to keep the same bytes of
// every state that is a text.
func TestPackedBytes(t *testing.T) {
	client := ownRedis(t)
	withoutStruct := func(text string) string {
		changed := strings.Replace(text, "local struct = rawget(_G, 'struct')", "local struct", 1)
		if changed == text && strings.Contains(text, "SETRANGE") {
			t.Error("the script has changed: it would use struct")
		}
		return changed
	}
	for name, rule := range storetest.WaysOf(100*time.Millisecond, 1000) {
		if rule.Reserve > 0 || stored(rule) && rule.Storage != runtime.StoragePacked {
			continue
		}
		for _, rule.Block = range []time.Duration{0, time.Millisecond} {
			t.Run(fmt.Sprintf("%s, block=%v", name, rule.Block), func(t *testing.T) {
				equalBytes(t, client, rule, injected(t, client, nil), injected(t, client, withoutStruct))
			})
		}
	}
}

// equalBytes has two stores that share a clock decide the same calls, each on a key of
// its own, and wants the same results and the same bytes.
func equalBytes(t *testing.T, client *redis.Client, rule *runtime.Rule, with, without documents.Subject) {
	for i, cost := range []int64{1, 3, 80, 1, 1, 250, 250, 250, 250, 1, 100, 9, 1} {
		decided := func(s documents.Subject, key string) string {
			r := must(t, s.Store, take, single(rule, key, cost)).Result
			value, err := client.Get(t.Context(), key).Bytes()
			ok(t, err)
			return fmt.Sprintf("%+v, %x", r, value)
		}
		equal(t, fmt.Sprintf("call %d, without struct", i), decided(without, documents.Prefix(t)+"0"), decided(with, documents.Prefix(t)+"1"))
		with.Advance(37 * time.Millisecond)
	}
}
