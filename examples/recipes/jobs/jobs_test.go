package jobs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A question starts jobs, or asks for those that have been started to end.
type question struct {
	Jobs   []Job
	Finish bool
}

type answer struct {
	Done   int
	Failed []string
}

// A worker counts in Redis what runs, and ends a job when the test says so.
type worker struct{ client *redis.Client }

func (w worker) Run(ctx context.Context, job Job) error {
	all, tenant := w.client.Incr(ctx, "running"), w.client.Incr(ctx, "running:"+job.Tenant)
	w.client.RPush(ctx, "seen", all.Val())
	w.client.RPush(ctx, "seen:"+job.Tenant, tenant.Val())
	w.client.RPush(ctx, "started", job.ID)
	err := w.client.BLPop(ctx, 0, "end").Err()
	w.client.Decr(ctx, "running:"+job.Tenant)
	w.client.Decr(ctx, "running")
	return err
}

func serve(client *redis.Client) (func(question) answer, *runtime.Limiter) {
	var options []runtime.Option
	if window, err := client.Get(context.Background(), "window").Int64(); err == nil {
		options = append(options, replica.Windows(time.Duration(window), "jobs.all", "jobs.tenant"))
	}
	limiter := replica.Limiter(client, options...)
	service := NewRateLimitedWorker(worker{client}, limiter)
	var running sync.WaitGroup
	var mu sync.Mutex
	var ended answer
	return func(q question) answer {
		for _, job := range q.Jobs {
			running.Go(func() {
				err := service.Run(context.Background(), job)
				mu.Lock()
				defer mu.Unlock()
				ended.Done++
				if err != nil {
					ended.Failed = append(ended.Failed, err.Error())
				}
			})
		}
		if q.Finish {
			running.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		return ended
	}, limiter
}

func TestMain(m *testing.M) { replica.Main(m, serve) }

// started waits until so many more jobs run.
func started(t *testing.T, client *redis.Client, n int) (ids []string) {
	t.Helper()
	for range n {
		id, err := client.BLPop(t.Context(), time.Minute, "started").Result()
		if err != nil {
			t.Fatalf("%v run, and no more: %v", ids, err)
		}
		ids = append(ids, id[1])
	}
	return ids
}

// most returns how many jobs ran at most at a time.
func most(t *testing.T, client *redis.Client, list string) (most int64) {
	t.Helper()
	var all []int64
	if err := client.LRange(t.Context(), list, 0, -1).ScanSlice(&all); err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		most = max(most, n)
	}
	return most
}

func queue(tenant string, from, n int) (q question) {
	for i := range n {
		q.Jobs = append(q.Jobs, Job{Tenant: tenant, ID: fmt.Sprint(tenant, from+i)})
	}
	return q
}

// Four jobs run at a time on all workers, and three of a tenant. The others wait, and
// none is lost.
func TestJobs(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t, func(o *redis.Options) { o.ReadTimeout = time.Minute })
	workers := replica.Start[question, answer](t, server.Addr, 2)
	for i, w := range workers {
		w.Ask(queue("acme", 5*i, 5))
	}
	started(t, client, 3)
	// The rest of acme's wait, and do not hold up another tenant.
	for i, w := range workers {
		w.Ask(queue("globex", 2*i, 2))
	}
	if ids := started(t, client, 1); !strings.HasPrefix(ids[0], "globex") {
		t.Errorf("%v runs, want one of globex", ids)
	}
	for range 14 {
		client.RPush(t.Context(), "end", "")
	}
	done := 0
	for _, a := range replica.All(workers, question{Finish: true}) {
		done += a.Done
		if len(a.Failed) > 0 {
			t.Error(a.Failed)
		}
	}
	if done != 14 {
		t.Errorf("%d jobs ended, want 14", done)
	}
	if all, acme := most(t, client, "seen"), most(t, client, "seen:acme"); all != 4 || acme != 3 {
		t.Errorf("%d ran at a time, and %d of acme, want 4 and 3", all, acme)
	}
}

// The permits of a worker that dies are free after the window.
func TestDeadWorker(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t, func(o *redis.Options) { o.ReadTimeout = time.Minute })
	client.Set(t.Context(), "window", int64(time.Second), 0)
	workers := replica.Start[question, answer](t, server.Addr, 2)
	workers[0].Ask(queue("acme", 0, 3))
	started(t, client, 3)
	workers[1].Ask(queue("acme", 3, 3))
	workers[0].Kill()
	for _, id := range started(t, client, 3) {
		if id < "acme3" {
			t.Errorf("job %s of the dead worker has started", id)
		}
	}
	for range 3 {
		client.RPush(t.Context(), "end", "")
	}
	if a := workers[1].Ask(question{Finish: true}); a.Done != 3 || len(a.Failed) > 0 {
		t.Errorf("the other worker: %+v, want 3 jobs done", a)
	}
}
