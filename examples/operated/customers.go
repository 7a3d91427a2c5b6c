package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rategen/rategen/examples/operated/orders"
	"github.com/rategen/rategen/runtime"
)

// A customer calls the service so many times a second on average.
type customer struct {
	name                   string
	create, search, export float64
}

var customers = []customer{
	{"acme", 4, 12, 0.3},
	{"globex", 8, 20, 0.5},
	{"initech", 25, 5, 0.2}, // a script without a pause
	{"umbrella", 1, 70, 3},  // searches as it types
}

// call calls the service until ctx ends, and returns when all calls have. Each goes
// its own way: a customer does not wait for an answer.
func (c customer) call(ctx context.Context, service orders.Service) {
	var running sync.WaitGroup
	defer running.Wait()
	repeat := func(rate float64, call func()) {
		for ctx.Err() == nil {
			select {
			case <-time.After(time.Duration(rand.ExpFloat64() / rate * float64(time.Second))):
				running.Go(call)
			case <-ctx.Done():
			}
		}
	}
	running.Go(func() { repeat(c.create, func() { _ = service.Create(ctx, c.name) }) })
	running.Go(func() { repeat(c.search, func() { _, _ = service.Search(ctx, c.name, "blue") }) })
	repeat(c.export, func() { _ = service.Export(ctx, c.name) })
}

// guess tries passwords of ada's, until the service refuses to look at more.
func guess(ctx context.Context, service orders.Service) {
	var limited *runtime.LimitedError
	for i := 0; ctx.Err() == nil && i < 10; i++ {
		if err := service.LogIn(ctx, "ada", "2001:db8::/56", fmt.Sprint("ada", i)); errors.As(err, &limited) {
			return
		}
	}
}
