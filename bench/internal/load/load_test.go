package load

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	var keys []string
	for i := range 100 {
		keys = append(keys, strconv.Itoa(i))
	}
	var asked sync.Map
	sample := Callers{Count: 7, Keys: keys, Time: 1}.Run(t.Context(), 20*time.Millisecond,
		func(ctx context.Context, key string) Answer {
			if ctx.Err() != nil {
				t.Error("a caller's context has ended")
			}
			asked.Store(key, true)
			i, _ := strconv.Atoi(key)
			time.Sleep(10 * time.Microsecond)
			return Answer(i % int(answers))
		})
	if n := sample.Calls(); n < 100 || uint64(n) != sample.Latency.total {
		t.Errorf("%d calls, %d latencies", n, sample.Latency.total)
	}
	if got := sample.Decisions(); got != sample.Calls()-sample.Answers[Failed] || sample.Answers[Failed] == 0 {
		t.Errorf("%d decisions of %v", got, sample.Answers)
	}
	if sample.Elapsed < 20*time.Millisecond || sample.Latency.Quantile(0.5) < 10*time.Microsecond {
		t.Errorf("elapsed %v, p50 %v", sample.Elapsed, sample.Latency.Quantile(0.5))
	}
	third := Callers{Count: 2, Keys: keys, Time: 3}.Run(t.Context(), time.Millisecond,
		func(context.Context, string) Answer { return Admitted })
	if n, timed := uint64(third.Calls())/3, third.Latency.total; timed > n || timed+2 < n {
		t.Errorf("%d of %d calls were timed, want a third", timed, third.Calls())
	}
	for _, key := range keys {
		if _, ok := asked.Load(key); !ok {
			t.Errorf("nobody asked about key %s", key)
		}
	}
}
