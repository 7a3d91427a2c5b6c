package runtime

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// BenchmarkTake measures what a call costs that is decided in this process, and what
// observers, overrides, scalers and caps add to it.
func BenchmarkTake(b *testing.B) {
	ctx := context.Background()
	rule := &Rule{Name: "r", Window: time.Hour, Max: MaxCount, Algorithm: TokenBucket}
	adaptive := *rule
	adaptive.Adaptive = half{}
	none := &Rule{Name: "none", Window: time.Hour, Max: 1, Algorithm: TokenBucket}
	memory := func(opts ...Option) *Limiter { return New(NewMemoryStore(), append(opts, silent)...) }
	capped := func(algorithm Algorithm) *Limiter {
		return memory(WithProcessCap(&Rule{Name: "process", Window: time.Second, Max: MaxCount, Algorithm: algorithm}))
	}
	all := ids(1000)
	for _, bench := range []struct {
		name    string
		limiter *Limiter
		rule    *Rule
	}{
		{"admitted", memory(), rule},
		{"denied", memory(), none},
		{"recalled denial", recalling(b, none, all), none},
		{"empty observer", memory(WithObserver(new(Observer))), rule},
		{"observer", memory(WithObserver(&Observer{Decision: func(context.Context, DecisionEvent) {}})), rule},
		{"overrides", memory(WithOverrides(OverrideFunc(func(context.Context) (Overrides, error) {
			return Overrides{Rules: map[string]Override{"r": {Max: new(int64(MaxCount))}}}, nil
		}), time.Hour)), rule},
		{"adaptive", memory(), &adaptive},
		{"fixed-window cap", capped(FixedWindow), rule},
		{"token-bucket cap", capped(TokenBucket), rule},
	} {
		take := func(i int) {
			_, _ = bench.limiter.Take(ctx, bench.rule.Limit(NewKey().AddString(all[i%len(all)])))
			if bench.rule == &adaptive {
				bench.limiter.Measure(bench.rule, time.Now())
			}
		}
		b.Run(bench.name, func(b *testing.B) { benchmarkEach(b, len(all), take) })
		b.Run(bench.name+" parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					take(i)
				}
			})
		})
		_ = bench.limiter.Close()
	}
}

type half struct{}

func (half) Factor(Load) float64 { return 0.5 }

// BenchmarkMemoryTake measures a decision of a MemoryStore: by way of a limiter, which
// takes the fast path, and put to the store as a Call with one limit or with two.
func BenchmarkMemoryTake(b *testing.B) {
	ctx := context.Background()
	for _, rule := range []Rule{
		{Name: "token-bucket admitted", Window: time.Hour, Max: MaxLog, Algorithm: TokenBucket},
		{Name: "token-bucket denied", Window: time.Hour, Max: 1, Algorithm: TokenBucket},
		{Name: "sliding-log admitted", Window: time.Millisecond, Max: MaxLog}, // so short that it stays small
		{Name: "sliding-log denied", Window: time.Hour, Max: 1},
	} {
		for _, n := range []int{1, 100_000} {
			keys := ids(n)
			limiter := New(NewMemoryStore(), silent)
			b.Run(fmt.Sprint(rule.Name, " ", n, " keys limiter"), func(b *testing.B) {
				benchmarkEach(b, n, func(i int) { _, _ = limiter.Take(ctx, rule.Limit(NewKey().AddString(keys[i%n]))) })
			})
			for limits := 1; limits <= 2; limits++ {
				b.Run(fmt.Sprint(rule.Name, " ", n, " keys store ", limits, " limits"), func(b *testing.B) {
					store, p := NewMemoryStore(), limiter.plan(&rule, rule.Max)
					bytes := make([][]byte, n)
					for i := range bytes {
						bytes[i] = []byte(keys[i])
					}
					other := []byte("all")
					charges := make([]terms.Charge, limits)
					calls := []terms.Call{{Charges: charges}}
					benchmarkEach(b, n, func(i int) {
						clear(charges)
						p.Charge(&charges[0], bytes[i%n], 1)
						if limits == 2 {
							p.Charge(&charges[1], other, 1)
						}
						_ = store.Take(ctx, calls)
					})
				})
			}
		}
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
