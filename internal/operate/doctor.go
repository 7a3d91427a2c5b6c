package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// A Check is one thing that may keep limits from working, and how it is.
type Check struct {
	Check  string `json:"check"`
	State  string `json:"state"` // ok, warn, bad or unknown
	Where  string `json:"where"` // the server, or empty
	Says   string `json:"says"`
	Remedy string `json:"remedy,omitempty"`
}

type doctor struct {
	*Core
	mu    sync.Mutex // servers are asked at the same time
	found []Check
}

// Doctor looks for what may keep limits from working: the worst first. What a program has found itself,
// whose page has the rules, program returns; nil: none was asked. With an error it returns what it has found until then.
func (c *Core) Doctor(ctx context.Context, program func(context.Context) ([]bridge.FindingGroup, error)) ([]Check, error) {
	d := &doctor{Core: c}
	if err := c.Masters(ctx, func(ctx context.Context, server *redis.Client) error {
		d.examine(ctx, server)
		return nil
	}); err != nil {
		return nil, err
	}
	slices.SortStableFunc(d.found, func(a, b Check) int { return strings.Compare(a.Where, b.Where) })
	d.examineBudgets()
	d.examineRights(ctx)
	d.examineOverrides(ctx)
	d.examineProcesses(ctx)
	d.examineProgram(ctx, program)
	err := d.examineKeys(ctx)
	if err != nil {
		d.say("keys", "unknown", "", "see latency, and -timeout", "%v", d.explained(err))
	}
	rank := func(f Check) int { return slices.Index([]string{"bad", "warn", "unknown", "ok"}, f.State) }
	slices.SortStableFunc(d.found, func(a, b Check) int { return cmp.Compare(rank(a), rank(b)) })
	return d.found, err
}

// say adds a check. What is ok needs no remedy.
func (d *doctor) say(check, state, where, remedy, format string, args ...any) {
	if state == "ok" {
		remedy = ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found = append(d.found, Check{check, state, where, fmt.Sprintf(format, args...), remedy})
}

func (d *doctor) has(check string) bool {
	return slices.ContainsFunc(d.found, func(f Check) bool { return f.Check == check })
}

// examineBudgets judges by the findings about the servers whether they keep the counts of
// limits of a day or longer.
func (d *doctor) examineBudgets() {
	var budgets []string
	for _, r := range d.Rules {
		if r.Period != rule.NoPeriod || r.Window >= 24*time.Hour {
			budgets = append(budgets, r.Name)
		}
	}
	loses := len(budgets) > 0 && slices.ContainsFunc(d.found, func(f Check) bool {
		return (f.Check == "eviction" || f.Check == "persistence") && f.State != "ok"
	})
	says := fmt.Sprintf("%d rules count for a day or longer", len(budgets))
	if loses {
		d.say("budgets", "warn", "", "noeviction and appendonly yes; docs/guarantees.md says what Redis keeps", "%s, and a server may lose that: %s", says, strings.Join(budgets, ", "))
	} else {
		d.say("budgets", "ok", "", "", "%s", says)
	}
}

// examineRights executes the scripts that decide calls, without charging anything.
func (d *doctor) examineRights(ctx context.Context) {
	for _, r := range d.Rules {
		if _, err := d.State(ctx, r, runtime.NewKey().AddString("ratectl doctor")); err != nil {
			state := "bad"
			if runtime.ClassOf(err) == observe.ClassTimeout { // which says nothing of rights
				state = "unknown"
			}
			d.say("rights", state, "", "see the rights of a Redis user in docs/running.md, and latency", "rule %s: %v", r.Name, d.explained(err))
			return
		}
	}
	d.say("rights", "ok", "", "", "the scripts of %d rules can be executed", len(d.Rules))
}

// examineOverrides looks for overrides that have no effect.
func (d *doctor) examineOverrides(ctx context.Context) {
	if d.Hash == "" {
		d.say("overrides", "unknown", "", "name it with -overrides", "the hash is not named")
		return
	}
	entries, err := d.Overrides(ctx)
	if remedy := RefusesWrites(InFull(err)); remedy != "" { // reads too, while it is loading
		d.say("overrides", "unknown", "", remedy, "%v", InFull(err))
		return
	}
	if err != nil {
		d.say("overrides", "bad", "", "ratectl override rm takes away what is broken; see ratectl history", "%v", d.explained(err))
		return
	}
	if last, err := d.lastOfHash(ctx); err == nil && len(entries) == 0 && last.After != "" && last.Did == "" {
		d.say("overrides", "bad", "", "ratectl undo or override set writes it again; see eviction, and who deletes keys", "the hash is empty, though change %d has left an override of %s there: it was evicted, deleted or flushed", last.ID, TargetText(last.Target))
		return
	}
	now, names := time.Now(), d.Names()
	for _, e := range entries {
		if e.Rule != "*" && !slices.Contains(names, e.Rule) {
			d.say("overrides", "warn", "", "remove it with ratectl override rm, or name the listing of that program", "%s: no rule of the listing has this name", TargetText(e.Target))
		} else if e.At(now) == (rule.KeyOverride{}) {
			d.say("overrides", "warn", "", "ratectl override rm", "%s: it has ended", TargetText(e.Target))
		}
	}
	if !d.has("overrides") {
		d.say("overrides", "ok", "", "", "%d, all of known rules", len(entries))
	}
}

func (d *doctor) lastOfHash(ctx context.Context) (last override.Record, err error) {
	editor, err := d.Editor()
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
func (d *doctor) examineProgram(ctx context.Context, ask func(context.Context) ([]bridge.FindingGroup, error)) {
	if ask == nil {
		d.say("program", "unknown", "", "name its live page with -rules", "no program was asked what it has found itself")
		return
	}
	groups, err := ask(ctx)
	if err != nil {
		d.say("program", "bad", "", "see whether the program runs, of the same release", "%v", err)
		return
	}
	for _, g := range groups {
		d.say("program", "warn", "", g.Help, "%s", FindingText(g))
	}
	if len(groups) == 0 {
		d.say("program", "ok", "", "", "all that it declares is in force, as far as it knows")
	}
}

// examineKeys looks for keys without an expiry, and for those of no rule.
func (d *doctor) examineKeys(ctx context.Context) error {
	groups := d.Groups()
	prefix := d.prefix()
	reports, orphan := &bridge.KeyGroup{Prefix: prefix + "{processes}:"}, &bridge.KeyGroup{Prefix: prefix} // a key counts for the longest
	groups = append(groups, orphan)
	if err := d.Survey(ctx, append(groups, reports)); err != nil {
		return err
	}
	keys, endless := int64(0), int64(0)
	for _, g := range groups {
		keys, endless = keys+g.Keys, endless+g.Endless
	}
	if keys == 0 {
		err := d.WrongNamespace(ctx, d.Rules)
		if _, is := errors.AsType[Failure](err); is {
			d.say("keys", "bad", "", "see -namespace and RATECTL_NAMESPACE", "%v", err)
		} else if err != nil {
			return err
		}
	}
	if endless > 0 {
		d.say("expiry", "warn", "", "ratectl fix-expiry", "%d of %d keys have no expiry", endless, keys)
	} else {
		d.say("expiry", "ok", "", "", "%d keys, each with an expiry", keys)
	}
	if orphan.Keys > 0 {
		d.say("orphans", "warn", "", "they go by themselves if they have an expiry; is the listing that of the version that runs?", "%d keys start with %s and belong to no rule of the listing", orphan.Keys, prefix)
	} else {
		d.say("orphans", "ok", "", "", "every key belongs to a rule of the listing")
	}
	return nil
}
