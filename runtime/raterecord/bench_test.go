package raterecord_test

import (
	"context"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// BenchmarkObserver measures what an event costs its caller.
func BenchmarkObserver(b *testing.B) {
	r := newRecorder(b, io.Discard)
	rule := &runtime.Rule{Name: "orders.Service.Create", Window: time.Minute, Max: 100}
	ev := observe.CallEvent{Limits: []observe.CallLimit{{Rule: rule, Declared: rule, Key: []byte("customer-000017"), Cost: 1, Max: 100, Charged: 1}}}
	o := r.Observer()
	run := func(b *testing.B, each func(func())) {
		b.ReportAllocs()
		before := r.Dropped()
		each(func() { o.Call(context.Background(), ev) })
		b.ReportMetric(float64(r.Dropped()-before)/float64(b.N), "dropped/op")
	}
	b.Run("one", func(b *testing.B) {
		run(b, func(do func()) {
			for b.Loop() {
				do()
			}
		})
	})
	b.Run("paced", func(b *testing.B) { // as few as the writer can keep up with
		run(b, func(do func()) {
			for i := 0; b.Loop(); i++ {
				do()
				if i%4096 == 0 {
					b.StopTimer()
					time.Sleep(2 * time.Millisecond)
					b.StartTimer()
				}
			}
		})
	})
	b.Run("all", func(b *testing.B) {
		run(b, func(do func()) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					do()
				}
			})
		})
	})
}

// BenchmarkTake measures a decision in memory beside a recording and without one.
func BenchmarkTake(b *testing.B) {
	for _, name := range []string{"without", "with"} {
		b.Run(name, func(b *testing.B) {
			opts := []runtime.Option{quiet}
			if name == "with" {
				opts = append(opts, runtime.WithObserver(newRecorder(b, io.Discard).Observer()))
			}
			limiter := runtime.New(runtime.NewMemoryStore(), opts...)
			defer limiter.Close()
			rule := &runtime.Rule{Name: "orders.Service.Create", Window: time.Hour, Max: 1_000_000_000, Algorithm: runtime.TokenBucket}
			var limits []runtime.Limit
			for i := range 1000 {
				limits = append(limits, rule.Limit(runtime.NewKey().AddString("customer-"+strconv.Itoa(i))))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_, _ = limiter.Take(context.Background(), limits[i%1000])
			}
		})
	}
}
