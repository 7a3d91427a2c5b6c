package runtime

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// BenchmarkWait measures what a call costs that takes a permit and returns it, and what it costs besides that it
// waits for the one before it. Both are made by two goroutines in turns, so that they differ by the wait alone.
func BenchmarkWait(b *testing.B) {
	for name, most := range map[string]int64{"has room": 2, "waits": 1} {
		b.Run(name, func(b *testing.B) {
			ctx, l := context.Background(), New(NewMemoryStore(), silent)
			defer l.Close()
			r := &Rule{Name: "r", Window: time.Hour, Max: most, Wait: time.Hour, Algorithm: Concurrency}
			begin, taken := make(chan struct{}), make(chan Decision, 1)
			take := func() {
				d, err := l.Take(ctx, r.Limit(NewKey().AddString("k")))
				if err != nil {
					b.Error(err)
				}
				taken <- d
			}
			go func() {
				for range begin {
					take()
				}
			}()
			defer close(begin)
			take()
			held := <-taken
			b.ReportAllocs()
			for b.Loop() {
				begin <- struct{}{}
				for most == 1 && !l.engine.Lines.Waiting() {
					runtime.Gosched()
				}
				for most == 2 && len(taken) == 0 {
					runtime.Gosched()
				}
				_ = l.Settle(ctx, held, 0)
				held = <-taken
			}
			_ = l.Settle(ctx, held, 0)
		})
	}
}
