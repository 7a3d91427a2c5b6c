package runtime

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"
)

// TestErrorsAreTheirOwn has goroutines keep the errors of their denials, which come from
// shared pages: none is another one's, and none changes.
func TestErrorsAreTheirOwn(t *testing.T) {
	t.Parallel()
	const callers, calls = 8, 5*pageErrors + 1
	limiter := New(NewMemoryStore(), silent)
	var errs [callers][]*LimitedError
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			rule := &Rule{Name: "r" + strconv.Itoa(i), Window: time.Hour, Max: int64(i + 1), Message: "m" + strconv.Itoa(i)}
			for range int64(i+1) + calls {
				_, err := limiter.Take(context.Background(), rule.Limit(nil))
				if limited := new(LimitedError); errors.As(err, &limited) {
					errs[i] = append(errs[i], limited)
				}
			}
		})
	}
	all.Wait()
	seen := map[*LimitedError]bool{}
	for i := range callers {
		if len(errs[i]) != calls {
			t.Errorf("caller %d: %d denials, want %d", i, len(errs[i]), calls)
		}
		for _, e := range errs[i] {
			if seen[e] {
				t.Fatalf("caller %d has an error of another call", i)
			}
			seen[e] = true
			if e.Rule != "r"+strconv.Itoa(i) || e.Limit != int64(i+1) || e.Error() != "m"+strconv.Itoa(i) || e.RetryAfter <= 0 {
				t.Fatalf("caller %d: %+v, %v", i, e, e)
			}
		}
	}
}
