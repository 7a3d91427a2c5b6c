package main

import (
	"context"
	"encoding/json"
	"strings"
)

// examineProgram returns what the program has found itself whose page has the rules.
func (o *operator) examineProgram(ctx context.Context) []finding {
	if !isPage(o.rules) {
		return []finding{{"program", "unknown", "", "no program was asked what it has found itself", "name its live page with -rules"}}
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	state, err := o.askPage(ctx, "-rules", o.rules, "api/state", "application/json")
	if err != nil {
		return []finding{{"program", "bad", "", err.Error(), "see whether the program runs"}}
	}
	defer state.Close()
	var answer struct {
		Findings struct {
			Findings []struct{ Code, Rule, Detail, Text, Help string }
		}
	}
	if err := json.NewDecoder(state).Decode(&answer); err != nil {
		return []finding{{"program", "bad", "", "the page does not say what it has found: " + err.Error(), "have both of one release"}}
	}
	var found []finding
	for _, f := range answer.Findings.Findings {
		says := strings.Join(strings.Fields(f.Code+" "+f.Rule+" "+f.Detail), " ") + ": " + f.Text
		found = append(found, finding{"program", "warn", "", says, f.Help})
	}
	if len(found) == 0 {
		found = []finding{{"program", "ok", "", "all that it declares is in force, as far as it knows", ""}}
	}
	return found
}
