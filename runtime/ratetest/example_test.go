package ratetest_test

import (
	stdcontext "context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratetest"
)

// A shop is code under test. Its limit stands for that of a generated wrapper.
type shop struct{ limiter *runtime.Limiter }

var orderLimit = &runtime.Rule{Name: "shop.Orders.Place", Prefix: "rate_limit:shop.Orders.Place:", Window: 10 * time.Second, Max: 2, Message: "too many orders"}

// Place orders something for a customer, who is told to come back if it is refused.
func (s shop) Place(customer string) string {
	_, err := s.limiter.Take(stdcontext.Background(), orderLimit.Limit(runtime.NewKey().AddString(customer)))
	var limited *runtime.LimitedError
	if errors.Is(err, runtime.ErrCostExceedsLimit) {
		return "never"
	}
	if errors.As(err, &limited) {
		return "come back in " + limited.RetryAfter.String()
	}
	if err != nil {
		return "failed"
	}
	return "ordered"
}

// t stands for the *testing.T of a test.
var t testing.TB = printing{}

// A printing test prints its failures.
type printing struct{ testing.TB }

func (printing) Helper()           {}
func (printing) Cleanup(func())    {}
func (printing) Output() io.Writer { return io.Discard }

func (printing) Errorf(format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...) + "\n") {
		fmt.Print(strings.TrimRight(line, " \n"), "\n")
	}
}

// A test moves the time of its limiter, and checks what was decided.
func Example() {
	limiter := ratetest.New(t)
	shop := shop{limiter.Limiter}
	for range 3 {
		fmt.Println(shop.Place("ann"))
	}
	limiter.Advance(10 * time.Second)
	fmt.Println(shop.Place("ann"))

	limiter.Check("shop.Orders.Place").Admitted(3).Refused(1).Keys("ann")
	limiter.NothingElse()
	// Output:
	// ordered
	// ordered
	// come back in 10s
	// ordered
}

// The limit is as good as new when its window is over, and not a microsecond before.
func ExampleLimiter_Advance() {
	limiter := ratetest.New(t)
	shop := shop{limiter.Limiter}
	shop.Place("ann")
	shop.Place("ann")
	limiter.Advance(10*time.Second - time.Microsecond)
	fmt.Println(shop.Place("ann"))
	limiter.Advance(time.Microsecond)
	fmt.Println(shop.Place("ann"))
	// Output:
	// come back in 1µs
	// ordered
}

// What the code does when it is refused is tested without using up a limit.
func ExampleLimiter_Next() {
	limiter := ratetest.New(t)
	shop := shop{limiter.Limiter}
	limiter.Next("shop.Orders.Place", 1, ratetest.Refuse(time.Minute))
	limiter.Next("shop.Orders.Place", 1, ratetest.Refuse(runtime.Never))
	for range 3 {
		fmt.Println(shop.Place("ann"))
	}
	// Output:
	// come back in 1m0s
	// never
	// ordered
}

// The limit has the failure policy "open": orders are placed though nobody counts.
func ExampleLimiter_Always() {
	limiter := ratetest.New(t)
	shop := shop{limiter.Limiter}
	limiter.Always("shop.Orders.Place", ratetest.Unavailable())
	for range 3 {
		fmt.Println(shop.Place("ann"))
	}
	limiter.Check("shop.Orders.Place").Admitted(3).Cost(0)
	// Output:
	// ordered
	// ordered
	// ordered
}

// A check that fails lists what has happened.
func ExampleCheck() {
	limiter := ratetest.New(t)
	shop := shop{limiter.Limiter}
	shop.Place("ann")
	shop.Place("bob")
	limiter.Advance(3 * time.Second)
	shop.Place("ann")
	shop.Place("ann")
	limiter.Check("shop.Orders.Place").Keys("ann", "bob").Admitted(4)
	// Output:
	// ratetest: rule "shop.Orders.Place": 3 calls were admitted, want 4
	// this has happened:
	//   0s  shop.Orders.Place "ann"  admitted  cost 1, 1 of 2 left
	//   0s  shop.Orders.Place "bob"  admitted  cost 1, 1 of 2 left
	//   3s  the clock was moved      by 3s
	//   3s  shop.Orders.Place "ann"  admitted  cost 1, 0 of 2 left
	//   3s  shop.Orders.Place "ann"  refused   cost 1, 0 of 2 left, retry after 7s
}

// Where limits do not matter, nothing is refused. No test is needed for it.
func ExampleUnlimited() {
	shop := shop{ratetest.Unlimited()}
	for range 3 {
		fmt.Println(shop.Place("ann"))
	}
	// Output:
	// ordered
	// ordered
	// ordered
}
