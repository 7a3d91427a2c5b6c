package credits

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
)

// A printer prints, or fails.
type printer struct{ fails *atomic.Bool }

var errPaper = errors.New("no paper")

func (p printer) Print(context.Context, Account, int) error {
	if p.fails.Load() {
		return errPaper
	}
	return nil
}

// A customer pays many times while calls of all replicas use its credits. What is printed is
// what was paid for, to the page.
func TestCredits(t *testing.T) {
	limiters := replica.Limiters(t)
	var fails, paying atomic.Bool
	var bought atomic.Int64 // by ann, in the database
	var replicas []Printer
	for _, limiter := range limiters {
		replicas = append(replicas, NewRateLimitedPrinter(printer{&fails}, limiter))
	}
	paying.Store(true)
	bought.Store(10)
	var payments sync.WaitGroup
	for range 4 {
		payments.Go(func() {
			for range 25 {
				bought.Add(7)
			}
		})
	}
	go func() {
		payments.Wait()
		paying.Store(false)
	}()
	var printed atomic.Int64
	replica.All(replicas, func(p Printer) (none struct{}) {
		limittest.Concurrently(8, func(int) {
			for {
				last := !paying.Load()
				err := p.Print(t.Context(), Account{"ann", 0, bought.Load()}, 1)
				if err == nil {
					printed.Add(1)
				} else if !errors.Is(err, runtime.ErrLimited) {
					t.Error(err)
					return
				} else if last {
					return
				}
			}
		})
		return none
	})
	if n := printed.Load(); n != bought.Load() {
		t.Errorf("%d pages printed, and %d paid for", n, bought.Load())
	}
	calls := func(what string, p Printer, a Account, prints, refuses int) {
		t.Helper()
		for i := range prints + refuses {
			want := error(nil)
			if i >= prints {
				want = runtime.ErrLimited
			}
			if err := p.Print(t.Context(), a, 1); !errors.Is(err, want) {
				t.Errorf("%s: page %d: %v, want %v", what, i, err, want)
			}
		}
	}
	// A payment holds at once, also where calls were just refused, and only for its account.
	ann := Account{"ann", 0, bought.Add(2)}
	calls("after a payment", replicas[0], ann, 1, 0)
	calls("after a payment", replicas[1], ann, 1, 0)
	calls("after a payment", replicas[0], ann, 0, 1)
	// A page that is not printed costs nothing, and a new batch begins anew.
	bob := Account{"bob", 0, 1}
	fails.Store(true)
	for range 3 {
		if err := replicas[0].Print(t.Context(), bob, 1); !errors.Is(err, errPaper) {
			t.Error(err)
		}
	}
	fails.Store(false)
	calls("after failures", replicas[0], bob, 1, 1)
	calls("of a new batch", replicas[1], Account{"bob", 1, 3}, 3, 2)
}
