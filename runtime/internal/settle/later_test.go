package settle

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime/internal/permit"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
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

func (s *distant) Settle(_ context.Context, charges []terms.Charge) error {
	s.requests = append(s.requests, request{time.Since(s.begin), len(charges)})
	time.Sleep(s.away)
	return nil
}

func TestLater(t *testing.T) {
	bucket, permits := terms.TokenBucket, terms.Permits
	for _, test := range []struct {
		name      string
		away      time.Duration
		algorithm terms.Algorithm
		calls     int
		each      time.Duration // between calls
		close     time.Duration // when the settler is closed; 0: long after all
		want      []request
	}{
		{"a call waits for others", 0, bucket, 1, 0, 0, []request{{linger, 1}}},
		{"calls in a row share requests", 0, bucket, 40, linger * 3 / 40, 0, []request{{linger, 14}, {2 * linger, 13}, {3 * linger, 13}}},
		{"distant ones more so", 5 * linger, bucket, 40, linger * 3 / 40, 0, []request{{linger, 14}, {7 * linger, 26}}},
		{"a whole request does not wait", 0, bucket, together, 0, 0, []request{{0, together}}},
		{"a permit does not wait", 0, permits, 1, 0, 0, []request{{0, 1}}},
		{"nor do permits under way", 3 * linger, permits, 3, linger, 0, []request{{0, 1}, {3 * linger, 2}}},
		{"closing waits for nobody else", 0, bucket, 3, 0, linger / 2, []request{{linger / 2, 3}}},
		{"after it each is settled by its caller", 0, bucket, 3, linger, linger / 2, []request{{linger / 2, 1}, {linger, 1}, {2 * linger, 1}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &distant{begin: time.Now(), away: test.away}
				s := &Settler{
					Stores:    [2]terms.Store{store, store},
					Permits:   new(permit.Permits),
					Bound:     func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
					Unsettled: func(_ context.Context, _ *plan.Plan, err error) { t.Error(err) },
					Contain:   func() {},
				}
				var calls sync.WaitGroup
				calls.Go(func() {
					for i := range test.calls {
						b := NewBatch()
						b.add(new(plan.Plan), terms.Charge{Terms: terms.Terms{Algorithm: test.algorithm}, Key: fmt.Append(nil, i)})
						s.Later(t.Context(), b)
						b.Free()
						time.Sleep(test.each)
					}
				})
				last := test.close
				if last == 0 {
					last = time.Second
				}
				time.Sleep(last)
				if err := s.Close(time.Minute); err != nil {
					t.Error(err)
				}
				calls.Wait()
				if !slices.Equal(store.requests, test.want) {
					t.Errorf("requests %v, want %v", store.requests, test.want)
				}
				if err := s.Close(time.Minute); err != nil {
					t.Error("a second time:", err)
				}
			})
		})
	}
}
