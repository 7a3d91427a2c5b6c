package ledger

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// A request is what a store was asked to settle together.
type request struct {
	after   time.Duration
	charges int
}

// A distant store notes requests, each of which takes a while.
type distant struct {
	terms.Store
	begin    time.Time
	away     time.Duration
	requests []request
}

func (d *distant) Settle(_ context.Context, charges []terms.Charge) error {
	d.requests = append(d.requests, request{time.Since(d.begin), len(charges)})
	time.Sleep(d.away)
	return nil
}

// A store that takes nothing back at once is asked by the queue.
func TestLater(t *testing.T) {
	const ms = time.Millisecond
	bucket, permits := algorithm.TokenBucket, algorithm.Permits
	for _, test := range []struct {
		name      string
		away      time.Duration
		algorithm algorithm.Algorithm
		calls     int
		each      time.Duration // between calls
		close     time.Duration // when the settler is closed; 0: long after all
		want      []request
	}{
		{"calls at a time share a request", ms, bucket, 4, 0, 0, []request{{0, 1}, {ms, 3}}},
		{"so do permits", ms, permits, 4, 0, 0, []request{{0, 1}, {ms, 3}}},
		{"a call in a row waits for the one before", 3 * ms, bucket, 5, 9 * ms / 5, 0, []request{{0, 1}, {3 * ms, 1}, {6 * ms, 2}, {9 * ms, 1}}},
		{"a request is no larger than it may be", ms, bucket, 2*queueBatch + 2, 0, 0, []request{{0, 1}, {ms, queueBatch}, {2 * ms, queueBatch}, {3 * ms, 1}}},
		{"closing waits for all", 3 * ms, bucket, 4, 0, ms, []request{{0, 1}, {3 * ms, 3}}},
		{"after it each is settled by its caller", 0, bucket, 3, ms, ms / 2, []request{{0, 1}, {ms, 1}, {2 * ms, 1}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &distant{begin: time.Now(), away: test.away}
				s := New(Config{
					Stores:    [2]terms.Store{store, store},
					Bound:     func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
					Unsettled: func(_ context.Context, _ *rule.Rule, err error) { t.Error(err) },
					Contain:   func() {},
				})
				var calls sync.WaitGroup
				calls.Go(func() {
					for i := range test.calls {
						b := NewSettlement()
						b.add(new(plan.Plan), terms.Charge{Terms: terms.Terms{Algorithm: test.algorithm}, Key: fmt.Append(nil, i)})
						s.SettleLater(t.Context(), b)
						b.Free()
						if i == 0 {
							synctest.Wait() // the goroutine has taken it
						}
						time.Sleep(test.each)
					}
				})
				last := test.close
				if last == 0 {
					last = time.Second
				}
				time.Sleep(last)
				if err := s.queue.close(time.Minute); err != nil {
					t.Error(err)
				}
				calls.Wait()
				if !slices.Equal(store.requests, test.want) {
					t.Errorf("requests %v, want %v", store.requests, test.want)
				}
				if err := s.queue.close(time.Minute); err != nil {
					t.Error("a second time:", err)
				}
			})
		})
	}
}
