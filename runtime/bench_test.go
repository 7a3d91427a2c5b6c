package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// BenchmarkTake measures what a call costs that is decided in this process, and what
// observers, overrides, scalers and caps add to it.
func BenchmarkTake(b *testing.B) {
	ctx := context.Background()
	r := &Rule{Name: "r", Window: time.Hour, Max: rule.MaxCount, Algorithm: TokenBucket}
	adaptive := *r
	adaptive.Adaptive = half{}
	none := &Rule{Name: "none", Window: time.Hour, Max: 1, Algorithm: TokenBucket}
	memory := func(opts ...Option) *Limiter { return New(NewMemoryStore(), append(opts, silent)...) }
	capped := func(algorithm Algorithm) *Limiter {
		return memory(WithProcessCap(&Rule{Name: "process", Window: time.Second, Max: rule.MaxCount, Algorithm: algorithm}))
	}
	all := ids(1000)
	for _, bench := range []struct {
		name    string
		limiter *Limiter
		rule    *Rule
	}{
		{"admitted", memory(), r},
		{"refused", memory(), none},
		{"recalled refusal", recalling(b, none, all), none},
		{"empty observer", memory(WithObserver(new(observe.Observer))), r},
		{"observer", memory(WithObserver(&observe.Observer{Decision: func(context.Context, observe.DecisionEvent) {}})), r},
		{"overrides", memory(WithOverrides(OverrideFunc(func(context.Context) (Overrides, error) {
			return Overrides{Rules: map[string]rule.Override{"r": {Max: new(int64(rule.MaxCount))}}}, nil
		}), time.Hour)), r},
		{"adaptive", memory(), &adaptive},
		{"fixed-window cap", capped(FixedWindow), r},
		{"token-bucket cap", capped(TokenBucket), r},
	} {
		take := func(i int) {
			_, _ = bench.limiter.Take(ctx, bench.rule.Limit(NewKey().AddString(all[i%len(all)])))
			if bench.rule == &adaptive {
				lent{bench.limiter}.Measure(bench.rule, time.Now())
			}
		}
		b.Run(bench.name, func(b *testing.B) {
			for i := range all { // whose states are there then
				take(i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				take(i)
			}
		})
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
