package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// BenchmarkMemoryTake measures a decision of a MemoryStore: by way of a limiter,
// which takes the fast path, and put to the store as a Call with one limit or
// with two.
func BenchmarkMemoryTake(b *testing.B) {
	for _, algorithm := range []struct {
		name   string
		of     Algorithm
		window time.Duration // of the admitted calls, so short that a log stays small
	}{
		{"token-bucket", TokenBucket, time.Hour},
		{"sliding-log", SlidingLog, time.Millisecond},
	} {
		admitted := &Rule{Prefix: "rate_limit:emp:", Window: algorithm.window, Max: MaxLog, Algorithm: algorithm.of}
		denied := &Rule{Prefix: "rate_limit:none:", Window: time.Hour, Max: 1, Algorithm: algorithm.of}
		for _, rule := range []struct {
			name string
			*Rule
		}{{"admitted", admitted}, {"denied", denied}} {
			for _, keys := range []struct {
				name string
				ids  []string
			}{{"1 key", ids(1)}, {"100000 keys", ids(100_000)}} {
				b.Run(algorithm.name+" "+rule.name+" "+keys.name, func(b *testing.B) {
					benchmarkMemory(b, rule.Rule, keys.ids)
				})
			}
		}
	}
}

func benchmarkMemory(b *testing.B, rule *Rule, ids []string) {
	ctx := context.Background()
	b.Run("limiter", func(b *testing.B) {
		limiter := New(NewMemoryStore(), silent)
		take := func(i int) { _, _ = limiter.Take(ctx, rule.Limit(NewKey().AddString(ids[i%len(ids)]))) }
		benchmarkEach(b, len(ids), take)
	})
	for name, limits := range map[string]int{"store": 1, "store two limits": 2} {
		b.Run(name, func(b *testing.B) {
			store := NewMemoryStore()
			keys := make([][]byte, len(ids))
			for i := range keys {
				keys[i] = []byte(rule.Prefix + ids[i])
			}
			other := []byte(rule.Prefix + "all")
			charges := make([]terms.Charge, limits)
			calls := []terms.Call{{Charges: charges}}
			p := New(store, silent).plan(rule, rule.Max)
			benchmarkEach(b, len(ids), func(i int) {
				charges[0] = terms.Charge{}
				p.Charge(&charges[0], keys[i%len(keys)], 1)
				if limits == 2 {
					charges[1] = terms.Charge{}
					p.Charge(&charges[1], other, 1)
				}
				_ = store.Take(ctx, calls)
			})
		})
	}
}

// benchmarkEach measures take after every key was taken once.
func benchmarkEach(b *testing.B, keys int, take func(int)) {
	for i := range keys {
		take(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		take(i)
	}
}
