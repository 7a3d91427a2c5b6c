package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

const created = "orders.Service.Create"

// A story changes limits, and says what the metrics tell of it.
type story struct {
	out      io.Writer
	editor   *override.Editor
	limiter  *runtime.Limiter
	registry *prometheus.Registry
	step     time.Duration // between two changes
}

// tell tells the story, or as much of it as there is time for.
func (s *story) tell(ctx context.Context) error {
	r, robot := override.Target{Rule: created}, override.Target{Rule: created, Pattern: "initech", Keys: true}
	edit := func(e override.Edit) error {
		e.Who = "the story"
		_, err := s.editor.Edit(ctx, e)
		return err
	}
	for _, part := range []struct {
		text   string
		change func() error
	}{
		{"The limit is as the directive says.", func() error { return nil }},
		{"It becomes 30 a second, as by: ratectl override set " + created + " -max 30", func() error {
			return edit(override.Edit{Target: r, Set: rule.KeyOverride{Max: new(int64(30))}})
		}},
		{"It is as declared again, and initech alone is kept out, as by: ratectl block " + created + " initech", func() error {
			if err := edit(override.Edit{Target: r, Remove: true}); err != nil {
				return err
			}
			return edit(override.Edit{Target: robot, Block: true})
		}},
		{"initech has its limit again, as by: ratectl unblock " + created + " initech", func() error {
			return edit(override.Edit{Target: robot, Clear: []string{"block"}})
		}},
	} {
		if err := part.change(); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		fmt.Fprintln(s.out, part.text)
		if !s.sleep(ctx, min(s.step/2, 2*time.Second)) { // until the limiter has read it
			return nil
		}
		before := s.counts()
		if !s.sleep(ctx, s.step) {
			return nil
		}
		s.say(before, s.counts())
	}
	fmt.Fprintln(s.out, "The page goes on. Change a limit there, or end this with Ctrl-C.")
	return nil
}

// sleep returns false if ctx ended before the time was over.
func (s *story) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// say prints what became of the calls between two counts.
func (s *story) say(before, after map[string]float64) {
	admitted, refused := after["admitted"]-before["admitted"], after["refused"]-before["refused"]
	for _, rule := range s.limiter.Rules() {
		if rule.Rule.Name == created {
			fmt.Fprintf(s.out, "   %s: %d per %v; %.0f calls a second, %.0f %% of them refused\n", created, rule.Max, rule.Window,
				(admitted+refused)/s.step.Seconds(), 100*refused/max(1, admitted+refused))
		}
	}
}

// counts returns how many calls of Create were decided by verdict, as the metrics
// say it.
func (s *story) counts() map[string]float64 {
	counts := map[string]float64{}
	families, _ := s.registry.Gather()
	for _, family := range families {
		if family.GetName() != "rategen_decisions_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["rule"] == created {
				counts[labels["verdict"]] += metric.GetCounter().GetValue()
			}
		}
	}
	return counts
}
