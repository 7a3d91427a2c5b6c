package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime"
)

// sizes are how many events a key holds.
var sizes = []int{10, 100, 1000, 10_000}

// memory prints what a key takes that holds as many events as its limit
// admits, spread over most of the window.
func (m measured) memory(ctx context.Context) error {
	const (
		window = 20 * time.Second
		ticks  = 180
		tick   = 100 * time.Millisecond
	)
	rules := make([][]*runtime.Rule, len(ways))
	for i := range ways {
		for _, size := range sizes {
			rule := ways[i].rule
			rule.Name = fmt.Sprintf("memory:%02d:%05d", i, size)
			rule.Window, rule.Max = window, int64(size)
			rules[i] = append(rules[i], &rule)
		}
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for n := range ticks {
		var now []*runtime.Rule
		for _, row := range rules {
			for j, rule := range row {
				for range sizes[j]*(n+1)/ticks - sizes[j]*n/ticks {
					now = append(now, rule)
				}
			}
		}
		results, err := take(ctx, m.store, now)
		if err != nil {
			return err
		}
		for i, result := range results {
			if !result.Allowed {
				return fmt.Errorf("%s is full too soon", now[i].Name)
			}
		}
		<-ticker.C
	}
	fmt.Fprintf(m.out, "Bytes of a key that holds so many events (%s, a key of 15 bytes):\n\n", m.product)
	fmt.Fprint(m.out, "| |")
	for _, size := range sizes {
		fmt.Fprintf(m.out, " %d |", size)
	}
	fmt.Fprint(m.out, "\n|---|---:|---:|---:|---:|\n")
	for i, row := range rules {
		fmt.Fprintf(m.out, "| %s |", ways[i].directive)
		for _, rule := range row {
			bytes, err := m.client.MemoryUsage(ctx, rule.Name, 0).Result()
			if err != nil {
				return fmt.Errorf("%s: %w", rule.Name, err)
			}
			fmt.Fprintf(m.out, " %d |", bytes)
		}
		fmt.Fprintln(m.out)
	}
	return nil
}
