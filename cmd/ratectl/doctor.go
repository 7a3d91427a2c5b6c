package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// A doctorCommand looks for what may keep limits from working, and says what helps.
type doctorCommand struct {
	session
	mu    sync.Mutex // servers are asked at the same time
	found []finding
}

func (c *doctorCommand) about() about {
	return about{
		name: "doctor", short: "look for what may keep limits from working", needs: readsRules,
		long: "Checks every server's version, role, clock, latency, eviction, memory and persistence; writes a key for a millisecond; tries the scripts of every rule, without charging; looks for overrides of no rule or that have expired, reads what processes report, asks the program whose page has the rules what it has found, and looks for keys without an expiry or of no rule. Each finding is ok, warn, bad or unknown, with a remedy. " +
			"The exit code is 1 if one is bad. Walks over the database, and needs the right +info, too.",
	}
}

func (c *doctorCommand) run(ctx context.Context, _ []string) error {
	if err := c.Masters(ctx, func(ctx context.Context, server *redis.Client) error {
		c.examine(ctx, server)
		return nil
	}); err != nil {
		return err
	}
	slices.SortStableFunc(c.found, func(a, b finding) int { return strings.Compare(a.Where, b.Where) })
	c.examineBudgets()
	c.examineRights(ctx)
	c.examineOverrides(ctx)
	c.examineProcesses(ctx)
	c.examineProgram(ctx)
	if err := c.examineKeys(ctx); err != nil {
		return err
	}
	slices.SortStableFunc(c.found, func(a, b finding) int { return cmp.Compare(a.rank(), b.rank()) })
	if err := printEach(&c.printer, "CHECK STATE WHERE SAYS REMEDY", c.found, finding.row); err != nil {
		return err
	}
	if bad := len(slices.DeleteFunc(c.found, func(f finding) bool { return f.State != "bad" })); bad > 0 {
		return foreign{fmt.Errorf("%d checks say that something is wrong", bad)}
	}
	return nil
}

// examineBudgets judges by the findings about the servers whether they keep the counts of
// limits of a day or longer.
func (c *doctorCommand) examineBudgets() {
	var budgets []string
	for _, d := range c.Rules {
		if d.Period != rule.NoPeriod || d.Window >= 24*time.Hour {
			budgets = append(budgets, d.Name)
		}
	}
	loses := len(budgets) > 0 && slices.ContainsFunc(c.found, func(f finding) bool {
		return (f.Check == "eviction" || f.Check == "persistence") && f.State != "ok"
	})
	says := fmt.Sprintf("%d rules count for a day or longer", len(budgets))
	if loses {
		c.say("budgets", "warn", "", "noeviction and appendonly yes; docs/guarantees.md says what Redis keeps", "%s, and a server may lose that: %s", says, strings.Join(budgets, ", "))
	} else {
		c.say("budgets", "ok", "", "", "%s", says)
	}
}

// examineRights executes the scripts that decide calls, without charging anything.
func (c *doctorCommand) examineRights(ctx context.Context) {
	for _, d := range c.Rules {
		if _, err := c.State(ctx, d, runtime.NewKey().AddString("ratectl doctor")); err != nil {
			c.say("rights", "bad", "", "see the rights of a Redis user in docs/running.md", "rule %s: %v", d.Name, c.explained(err))
			return
		}
	}
	c.say("rights", "ok", "", "", "the scripts of %d rules can be executed", len(c.Rules))
}

// examineOverrides looks for overrides that have no effect.
func (c *doctorCommand) examineOverrides(ctx context.Context) {
	if c.overrides == "" {
		c.say("overrides", "unknown", "", "name it with -overrides", "the hash is not named")
		return
	}
	entries, err := c.entries(ctx)
	if err != nil {
		c.say("overrides", "bad", "", "ratectl override rm takes away what is broken; see ratectl history", "%v", c.explained(err))
		return
	}
	if last, err := c.lastOfHash(ctx); err == nil && len(entries) == 0 && last.After != "" && last.Did == "" {
		c.say("overrides", "bad", "", "ratectl undo or override set writes it again; see eviction, and who deletes keys", "the hash is empty, though change %d has left an override of %s there: it was evicted, deleted or flushed", last.ID, describe(last.Target))
		return
	}
	now, names := time.Now(), c.ruleNames()
	for _, e := range entries {
		switch {
		case e.Rule != "*" && !slices.Contains(names, e.Rule):
			c.say("overrides", "warn", "", "remove it with ratectl override rm, or name the listing of that program", "%s: no rule of the listing has this name", describe(e.Target))
		case e.At(now) == rule.KeyOverride{}:
			c.say("overrides", "warn", "", "ratectl override rm", "%s: it has ended", describe(e.Target))
		}
	}
	if !c.has("overrides") {
		c.say("overrides", "ok", "", "", "%d, all of known rules", len(entries))
	}
}

// lastOfHash returns the last change in the history.
func (c *doctorCommand) lastOfHash(ctx context.Context) (last override.Record, err error) {
	editor, err := c.editor()
	if err != nil {
		return last, err
	}
	records, err := editor.History(ctx, 1)
	if len(records) > 0 {
		last = records[0]
	}
	return last, err
}

// examineProgram tells what the program has found itself whose page has the rules.
func (c *doctorCommand) examineProgram(ctx context.Context) {
	if !isPage(c.rules) {
		c.say("program", "unknown", "", "name its live page with -rules", "no program was asked what it has found itself")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	state, err := c.askPage(ctx, "-rules", c.rules, "api/state", "application/json")
	if err != nil {
		c.say("program", "bad", "", "see whether the program runs", "%v", err)
		return
	}
	defer state.Close()
	var answer struct {
		Findings struct {
			Findings []bridge.FindingGroup
		}
	}
	if err := json.NewDecoder(state).Decode(&answer); err != nil {
		c.say("program", "bad", "", "have both of one release", "the page does not say what it has found: %v", err)
		return
	}
	for _, f := range answer.Findings.Findings {
		c.say("program", "warn", "", f.Help, "%s", operate.FindingText(f))
	}
	if !c.has("program") {
		c.say("program", "ok", "", "", "all that it declares is in force, as far as it knows")
	}
}

// examineKeys looks for keys without an expiry, and for those of no rule.
func (c *doctorCommand) examineKeys(ctx context.Context) error {
	groups := c.Groups()
	prefix := "rate_limit:"
	if c.Namespace != "" {
		prefix = c.Namespace + ":" + prefix
	}
	reports, orphan := &bridge.KeyGroup{Prefix: prefix + "{processes}:"}, &bridge.KeyGroup{Prefix: prefix} // a key counts for the longest
	groups = append(groups, orphan)
	if err := c.Survey(ctx, append(groups, reports)); err != nil {
		return err
	}
	keys, endless := int64(0), int64(0)
	for _, g := range groups {
		keys, endless = keys+g.Keys, endless+g.Endless
	}
	if keys == 0 {
		err := c.wrongNamespace(ctx, c.Rules)
		switch {
		case codeOf(err) == nothing:
			c.say("keys", "bad", "", "see -namespace and RATECTL_NAMESPACE", "%v", err)
		case err != nil:
			return err
		}
	}
	if endless > 0 {
		c.say("expiry", "warn", "", "ratectl fix-expiry", "%d of %d keys have no expiry", endless, keys)
	} else {
		c.say("expiry", "ok", "", "", "%d keys, each with an expiry", keys)
	}
	if orphan.Keys > 0 {
		c.say("orphans", "warn", "", "they go by themselves if they have an expiry; is the listing that of the version that runs?", "%d keys start with %s and belong to no rule of the listing", orphan.Keys, prefix)
	} else {
		c.say("orphans", "ok", "", "", "every key belongs to a rule of the listing")
	}
	return nil
}
