package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
)

// A doctorCommand looks for what may keep limits from working, and says what helps.
type doctorCommand struct{ session }

func (c *doctorCommand) about() about {
	return about{
		name: "doctor", short: "look for what may keep limits from working", needs: readsRules,
		long: "Checks every server's version, role, clock, latency, eviction, memory and persistence; writes a key for a millisecond; tries the scripts of every rule, without charging; looks for overrides of no rule or that have expired, reads what processes report, asks the program whose page has the rules what it has found, and looks for keys without an expiry or of no rule. Each finding is ok, warn, bad or unknown, with a remedy. " +
			"The exit code is 1 if one is bad. Walks over the database, and needs the right +info, too.",
	}
}

func (c *doctorCommand) run(ctx context.Context, _ []string) error {
	ask := c.findings
	if !isPage(c.rules) {
		ask = nil
	}
	found, err := c.Doctor(ctx, ask)
	if err != nil {
		return err
	}
	if err := printEach(&c.printer, "CHECK STATE WHERE SAYS REMEDY", found, func(f operate.Check) []string {
		return []string{f.Check, f.State, cmp.Or(f.Where, "-"), f.Says, cmp.Or(f.Remedy, "-")}
	}); err != nil {
		return err
	}
	if bad := len(slices.DeleteFunc(found, func(f operate.Check) bool { return f.State != "bad" })); bad > 0 {
		return foreign{fmt.Errorf("%d checks say that something is wrong", bad)}
	}
	return nil
}

// findings asks the program whose page has the rules what it has found itself.
func (c *doctorCommand) findings(ctx context.Context) ([]bridge.FindingGroup, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	state, err := c.askPage(ctx, "-rules", c.rules, "api/state", "application/json")
	if err != nil {
		return nil, err
	}
	defer state.Close()
	var answer struct {
		Findings struct {
			Findings []bridge.FindingGroup
		}
	}
	err = json.NewDecoder(state).Decode(&answer)
	return answer.Findings.Findings, err
}
