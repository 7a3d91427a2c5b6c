package ratepage

import (
	"context"
	"fmt"
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// manyRules returns rules as a large program has them.
func manyRules(n int) []*runtime.Rule {
	rules := make([]*runtime.Rule, n)
	for i := range rules {
		name := fmt.Sprintf("service%d.Service.Method%d", i/100, i%100)
		rules[i] = &runtime.Rule{Name: name, Source: "service.go: Service.Method", Max: 1000, Window: time.Minute}
	}
	return rules
}

// TestDecisionAllocates wants the observer of a page to allocate nothing for a
// decision, and for a refused key that it knows.
func TestDecisionAllocates(t *testing.T) {
	page := New(WithKeys())
	o := page.Observer()
	ev := observe.DecisionEvent{Rule: "r", Source: rule.SourceStore, Latency: time.Millisecond}
	key := observe.KeyRefusedEvent{Rule: "r", Key: []byte("ann")}
	for range 10 {
		o.Decision(t.Context(), ev)
		o.KeyRefused(t.Context(), key)
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() { o.Decision(ctx, ev); o.KeyRefused(ctx, key) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestNobodyLooks wants a page that nobody looks at to do nothing but count.
func TestNobodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := New(WithKeys())
		limiter := newLimiter(t, page, manyRules(100)...)
		time.Sleep(time.Hour)
		if page.sampler.number != 0 {
			t.Errorf("%d samples were taken", page.sampler.number)
		}
		_ = limiter.Close()
	})
}

// TestMemory wants a page with 10,000 busy rules, full of what it remembers, to
// take less than 16 MiB beside what viewers' connections do.
func TestMemory(t *testing.T) {
	rules := manyRules(10_000)
	heap := func() uint64 {
		goruntime.GC()
		goruntime.GC()
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(quiet))
	limiter.Register(rules...)
	before := heap()
	page := New(WithKeys())
	page.Observer().Attach(limiter)
	now := time.Now()
	for second := range 40 {
		now = now.Add(interval)
		work(page, rules, second)
		page.sampler.next(page, now)
		page.sampler.rules(page, now)
	}
	if took := int64(heap() - before); took > 16<<20 {
		t.Errorf("%d KiB", took>>10)
	} else {
		t.Logf("%d KiB", took>>10)
	}
	goruntime.KeepAlive(page)
}

// work makes a call of every rule, and refuses a thousand keys.
func work(page *Page, rules []*runtime.Rule, second int) {
	o := page.Observer()
	for _, r := range rules {
		o.Decision(context.Background(), observe.DecisionEvent{Rule: r.Name, Source: rule.SourceStore, Latency: time.Millisecond})
	}
	for i := range 1000 {
		o.KeyRefused(context.Background(), observe.KeyRefusedEvent{Rule: "r", Key: fmt.Append(nil, "key", i*second)})
	}
}

// BenchmarkDecision is what the page adds to a decision.
func BenchmarkDecision(b *testing.B) {
	rules := manyRules(10_000)
	for _, source := range []rule.Source{rule.SourceRecalled, rule.SourceStore} {
		b.Run(source.String(), func(b *testing.B) {
			page := New(WithKeys())
			o := page.Observer()
			work(page, rules, 0)
			page.counts.sample()
			b.ReportAllocs()
			ctx, i := b.Context(), 0
			for b.Loop() {
				i++
				o.Decision(ctx, observe.DecisionEvent{Rule: rules[i%100].Name, Source: source, Latency: time.Millisecond})
			}
		})
	}
}

// BenchmarkKeyRefused is what counting a refused key adds to a refusal.
func BenchmarkKeyRefused(b *testing.B) {
	page := New(WithKeys())
	o := page.Observer()
	keys := make([][]byte, 1000)
	for i := range keys {
		keys[i] = fmt.Append(nil, "203.0.113.", i)
	}
	b.ReportAllocs()
	ctx, i := b.Context(), 0
	for b.Loop() {
		i++
		o.KeyRefused(ctx, observe.KeyRefusedEvent{Rule: "r", Key: keys[i%1000]})
	}
}

// BenchmarkSample is the second of a page with 10,000 rules, of which some have
// calls.
func BenchmarkSample(b *testing.B) {
	rules := manyRules(10_000)
	for _, busy := range []int{0, 100, 10_000} {
		b.Run(fmt.Sprintf("busy=%d", busy), func(b *testing.B) {
			page := New(WithKeys())
			limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(quiet), runtime.WithObserver(page.Observer()))
			limiter.Register(rules...)
			work(page, rules, 1)
			now := time.Now()
			page.sampler.next(page, now)
			for b.Loop() {
				b.StopTimer()
				work(page, rules[:busy], 1)
				b.StartTimer()
				now = now.Add(interval)
				page.sampler.next(page, now)
			}
			b.ReportMetric(float64(len(page.sampler.frame)), "frame-bytes")
		})
	}
}
