package faults

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A Crowd is how long many calls took that came at once to a Redis that gives
// no answer, the first of which have to find that out.
type Crowd struct {
	Calls         int
	P50, P99, Max time.Duration
}

// inCrowd is the limit of a call.
func inCrowd(i int) runtime.Limit { return crowdRule.Limit(runtime.NewKey().AddInt(int64(i % 1000))) }

var crowdRule = &runtime.Rule{Name: "crowd", Prefix: "crowd:", Window: time.Hour, Max: 1_000_000}

// Together has so many calls come at once to a limiter whose Redis gives no answer. Each must be
// let through by the failure policy.
func Together(tb testing.TB, limiter *runtime.Limiter, calls int) Crowd {
	tb.Helper()
	took := make([]time.Duration, calls)
	failed := make([]error, calls)
	var ready, wait sync.WaitGroup
	release := make(chan struct{})
	ready.Add(calls)
	for i := range calls {
		wait.Go(func() {
			limit := inCrowd(i)
			ready.Done()
			<-release
			begin := time.Now()
			d, err := limiter.Take(context.Background(), limit)
			took[i] = time.Since(begin)
			if err != nil || d.Source != rule.SourceFailure {
				failed[i] = fmt.Errorf("decided by %v, %v", d.Source, err)
			}
		})
	}
	ready.Wait()
	close(release)
	wait.Wait()
	for i, err := range failed {
		if err != nil {
			tb.Fatalf("call %d: %v", i, err)
		}
	}
	c := Crowd{Calls: calls}
	c.P50, c.P99, c.Max = quantiles(took)
	return c
}
