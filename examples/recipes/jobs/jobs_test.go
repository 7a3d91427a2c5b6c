package jobs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime/observe"
)

// A worker counts what runs, and ends a job when the test says so.
type worker struct {
	mu            sync.Mutex
	running, most map[string]int // by tenant; of all by ""
	started       chan string
	end           chan struct{}
}

func (w *worker) Run(_ context.Context, job Job) error {
	w.count(job, 1)
	w.started <- job.ID
	<-w.end
	w.count(job, -1)
	return nil
}

func (w *worker) count(job Job, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, tenant := range []string{"", job.Tenant} {
		w.running[tenant] += n
		w.most[tenant] = max(w.most[tenant], w.running[tenant])
	}
}

// Four jobs run at a time on all workers, and three of a tenant. The others wait, and
// none is lost.
func TestJobs(t *testing.T) {
	w := &worker{running: map[string]int{}, most: map[string]int{}, started: make(chan string, 14), end: make(chan struct{}, 14)}
	var waiting atomic.Int64
	limiters := replica.Limiters(t, limittest.Observing(observe.Observer{Wait: func(_ context.Context, ev observe.WaitEvent) {
		if ev.Waiting {
			waiting.Add(1)
		} else {
			waiting.Add(-1)
		}
	}}))
	var jobs sync.WaitGroup
	queue := func(tenant string, n int) {
		for i, limiter := range limiters {
			service := NewRateLimitedWorker(w, limiter)
			for k := range n {
				jobs.Go(func() {
					if err := service.Run(t.Context(), Job{Tenant: tenant, ID: fmt.Sprint(tenant, i, k)}); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
	queue("acme", 5)
	for range 3 {
		<-w.started
	}
	// The rest of acme's wait, and do not hold up another tenant.
	queue("globex", 2)
	if id := <-w.started; !strings.HasPrefix(id, "globex") {
		t.Errorf("%s runs, want one of globex", id)
	}
	limittest.Eventually(t, "the other ten wait", func() bool { return waiting.Load() == 10 })
	for range 14 {
		w.end <- struct{}{}
	}
	jobs.Wait()
	if w.most[""] != 4 || w.most["acme"] != 3 {
		t.Errorf("%d ran at a time, and %d of acme, want 4 and 3", w.most[""], w.most["acme"])
	}
}
