package adaptive_test

import (
	"context"
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/adaptive"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/wrapper"
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
	limiter.Register(exports)

	export := func(ctx context.Context, user string) error {
		if _, err := limiter.Take(ctx, exports.Limit(runtime.NewKey().AddString(user))); err != nil {
			return err
		}
		defer wrapper.Measure(limiter, exports, time.Now())
		return nil // the work
	}
	fmt.Println(export(context.Background(), "ann"), limiter.Rules()[0].Factor)
	// Output: <nil> 1
}

// One scaler for all adaptive rules of a limiter, which only ever lowers a max,
// and is heard of when it does.
func ExampleBand() {
	limiter := runtime.New(runtime.NewMemoryStore(),
		runtime.WithScaler(adaptive.To(adaptive.Band(0.3, 1))),
		runtime.WithObserver(&observe.Observer{Scale: func(e observe.ScaleEvent) {
			fmt.Println("the max of", e.Rule, "is multiplied by", e.Factor)
		}}),
	)
	defer limiter.Close()
	// Output:
}
