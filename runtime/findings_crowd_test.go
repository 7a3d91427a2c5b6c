package runtime_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// TestFindingsOfCrowds has many callers at once show what a rule counts.
func TestFindingsOfCrowds(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{1, 2, 8, 256} {
		for name, c := range map[string]struct {
			limit func(r *runtime.Rule, i int64) runtime.Limit
			after func(l *runtime.Limiter, d runtime.Decision) error
			want  []string
		}{
			"distinct": {limit: func(r *runtime.Rule, i int64) runtime.Limit { return r.Limit(runtime.NewKey().AddInt(i)) }, want: []string{"distinct_keys r"}},
			"pairs":    {limit: func(r *runtime.Rule, i int64) runtime.Limit { return r.Limit(runtime.NewKey().AddInt(i / 2)) }},
			"free":     {limit: func(r *runtime.Rule, i int64) runtime.Limit { return r.Limit(nil).WithCost(0) }, want: []string{"nothing_charged r"}},
			"one paid": {limit: func(r *runtime.Rule, i int64) runtime.Limit { return r.Limit(nil).WithCost(i / 3_999) }, want: nil},
			"returned": {
				limit: func(r *runtime.Rule, i int64) runtime.Limit { return r.Limit(nil) },
				after: func(l *runtime.Limiter, d runtime.Decision) error { return l.Refund(context.Background(), d) },
				want:  []string{"all_refunded r"},
			},
		} {
			t.Run(fmt.Sprint(name, " ", callers), func(t *testing.T) {
				var out lines
				l := runtime.New(runtime.NewMemoryStore(), out.Logger())
				defer l.Close()
				r := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1_000_000, Algorithm: runtime.FixedWindow}
				var next atomic.Int64
				var all sync.WaitGroup
				for range callers {
					all.Go(func() {
						for i := next.Add(1); i <= 4_000; i = next.Add(1) {
							d, err := l.Take(context.Background(), c.limit(r, i))
							if err == nil && c.after != nil {
								err = c.after(l, d)
							}
							if err != nil {
								t.Error(err)
							}
						}
					})
				}
				all.Wait()
				wantFound(t, l, &out, c.want...)
			})
		}
	}
}
