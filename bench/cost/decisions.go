package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

// stats is what decisions of one kind have cost.
type stats struct{ decisions, commands, micros int }

// String returns the cost of one decision.
func (s stats) String() string {
	if s.decisions == 0 {
		return "| |"
	}
	n := float64(s.decisions)
	return fmt.Sprintf("| %.1f | %.0f", float64(s.commands)/n, float64(s.micros)/n)
}

// decisions prints what a decision costs on a key that is as full as it gets,
// so that events leave it all the time.
func (m measured) decisions(ctx context.Context) error {
	const (
		window = 200 * time.Millisecond
		events = 100
		enough = 500
	)
	fmt.Fprintf(m.out, "\nCost of one decision in Redis, at `max=%d` (%s, one call a batch; the times depend on the machine and what else it does):\n\n", events, m.product)
	fmt.Fprint(m.out, "| | commands if admitted | µs | commands if refused | µs |\n|---|---:|---:|---:|---:|\n")
	for i := range ways {
		rule := ways[i].rule
		rule.Name = fmt.Sprintf("decisions:%d", i)
		rule.Window, rule.Max = window, events
		if rule.Wait > 0 {
			rule.Wait = window / 2
		}
		var kinds [2]stats // refused, admitted
		for begin := time.Now(); kinds[0].decisions < enough || kinds[1].decisions < enough; {
			if err := m.client.ConfigResetStat(ctx).Err(); err != nil {
				return err
			}
			results, err := take(ctx, m.store, []*runtime.Rule{&rule})
			if err != nil {
				return err
			}
			commands, micros, err := commandStats(ctx, m.client)
			if err != nil {
				return err
			}
			if time.Since(begin) < 2*window {
				continue // it fills
			}
			kind := &kinds[0]
			if results[0].Allowed {
				kind = &kinds[1]
			}
			kind.decisions++
			kind.commands += commands
			kind.micros += micros
		}
		fmt.Fprintf(m.out, "| %s %v %v |\n", ways[i].directive, kinds[1], kinds[0])
	}
	return nil
}

// commandStats returns how many commands scripts have called since the last
// reset, and for how long scripts ran.
func commandStats(ctx context.Context, client *redis.Client) (commands, micros int, err error) {
	info, err := client.InfoMap(ctx, "commandstats").Result()
	for name, values := range info["Commandstats"] {
		var calls, usec int
		if _, err := fmt.Sscanf(values, "calls=%d,usec=%d", &calls, &usec); err != nil {
			return 0, 0, err
		}
		name = strings.TrimPrefix(name, "cmdstat_")
		if strings.HasPrefix(name, "eval") {
			micros += usec
		} else if name != "info" && !strings.HasPrefix(name, "config") {
			commands += calls
		}
	}
	return commands, micros, err
}
