package adaptive_test

import (
	"context"
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/adaptive"
)

// A hand-written rule that adapts, measured as generated code does.
func ExampleTo() {
	var exports = &runtime.Rule{
		Name:     "export",
		Prefix:   "rate_limit:export:",
		Window:   time.Minute,
		Max:      100,
		Adaptive: adaptive.To(adaptive.CPU, adaptive.Latency),
	}
	limiter := runtime.New(runtime.NewMemoryStore())
	defer limiter.Close()

	export := func(ctx context.Context, user string) error {
		if _, err := limiter.Take(ctx, exports.Limit(runtime.NewKey().AddString(user))); err != nil {
			return err
		}
		defer limiter.Measure(exports, time.Now())
		return nil // the work
	}
	fmt.Println(export(context.Background(), "ann"), limiter.Factor(exports))
	// Output: <nil> 1
}

// One scaler for all adaptive rules of a limiter, which only ever lowers a max,
// and is heard of when it does.
func ExampleBand() {
	limiter := runtime.New(runtime.NewMemoryStore(),
		runtime.WithScaler(adaptive.To(adaptive.Band(0.3, 1))),
		runtime.WithObserver(&runtime.Observer{Scale: func(e runtime.ScaleEvent) {
			fmt.Println("the max of", e.Rule, "is multiplied by", e.Factor)
		}}),
	)
	defer limiter.Close()
	// Output:
}
