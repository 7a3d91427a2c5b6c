package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A limit for each user and one that all share: a call is charged to both or to neither.
func ExampleLimiter_Take() {
	perUser := &runtime.Rule{Name: "user", Prefix: "search:user:", Window: time.Minute, Max: 2, Message: "too many searches"}
	overall := &runtime.Rule{Name: "all", Prefix: "search:all:", Window: time.Second, Max: 1000, Algorithm: runtime.TokenBucket}
	limiter := runtime.New(runtime.NewMemoryStore(), quiet)

	for range 3 {
		decision, err := limiter.Take(context.Background(),
			perUser.Limit(runtime.NewKey().AddString("ann")),
			overall.Limit(nil),
		)
		var limited *runtime.LimitedError
		if errors.As(err, &limited) {
			fmt.Printf("%s: %s, retry within a minute: %t\n", limited.Rule, limited, limited.RetryAfter <= time.Minute)
		} else if err == nil {
			fmt.Printf("%s: %d left\n", decision.Rule, decision.Remaining)
		}
	}
	// Output:
	// user: 1 left
	// user: 0 left
	// user: too many searches, retry within a minute: true
}

// What turned out not to count is given back.
func ExampleLimiter_Refund() {
	ctx := context.Background()
	exports := &runtime.Rule{Name: "export", Prefix: "export:", Window: time.Hour, Max: 10}
	limiter := runtime.New(runtime.NewMemoryStore())
	limit := exports.Limit(runtime.NewKey().AddString("ann")).WithCost(4)

	decision, _ := limiter.Take(ctx, limit)
	fmt.Println(decision.Remaining)
	_ = limiter.Refund(ctx, decision)
	now, _ := limiter.Peek(ctx, limit)
	fmt.Println(now.Remaining)
	// Output:
	// 6
	// 10
}

// The parts of a key are escaped, so that no caller can imitate another.
func ExampleKey() {
	fmt.Println(runtime.NewKey().AddString("acme").AddInt(42))
	fmt.Println(runtime.NewKey().AddString("acme:42"))
	// Output:
	// acme:42
	// acme%3A42
}

// An override that switches a rule off is most easily a function.
func ExampleWithOverrides() {
	exports := &runtime.Rule{Name: "export", Prefix: "export:", Window: time.Hour, Max: 10}
	limiter := runtime.New(runtime.NewMemoryStore(), quiet,
		runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			return runtime.Overrides{Rules: map[string]rule.Override{
				"export": {Max: new(int64(20))}, // from wherever the program's settings are
			}}, nil
		}), 0))
	defer limiter.Close()

	decision, err := limiter.Take(context.Background(), exports.Limit(nil))
	fmt.Println(decision.Limit, decision.Remaining, err)
	// Output: 20 19 <nil>
}

// A stream is stopped at the last message that is paid.
func ExampleLimiter_Meter() {
	words := &runtime.Rule{Name: "words", Window: time.Hour, Max: 20, Algorithm: runtime.FixedWindow}
	limiter := runtime.New(runtime.NewMemoryStore(), quiet)
	ctx := context.Background()

	decision, err := limiter.Take(ctx, words.Limit(nil)) // one unit, in advance
	if err != nil {
		panic(err)
	}
	meter := limiter.Meter(ctx, decision, 0)
	defer meter.Close()
	for _, word := range []string{"the", "budget", "lasts", "until", "here"} {
		if err := meter.Charge(int64(len(word))); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(word)
	}
	// Output:
	// the
	// budget
	// lasts
	// until
	// rate limit exceeded
}

// A permit is kept until the reader is closed, or has ended.
func ExampleMeter_Reader() {
	downloads := &runtime.Rule{Name: "downloads", Window: time.Minute, Max: 1, Algorithm: runtime.Concurrency}
	limiter := runtime.New(runtime.NewMemoryStore(), quiet)
	ctx := context.Background()
	open := func() (io.ReadCloser, error) {
		decision, err := limiter.Take(ctx, downloads.Limit(nil))
		if err != nil {
			return nil, err
		}
		free := func(bytes int) []int64 { return nil }
		return limiter.Meter(ctx, decision).Reader(strings.NewReader("text"), free), nil
	}

	first, _ := open()
	_, err := open()
	fmt.Println("while it is open:", err)
	first.Close()
	_, err = open()
	fmt.Println("when it is closed:", err)
	// Output:
	// while it is open: rate limit exceeded
	// when it is closed: <nil>
}
