package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

// A finding is the result of one check.
type finding struct {
	Check  string `json:"check"`
	State  string `json:"state"` // ok, warn, bad or unknown
	Where  string `json:"where"` // the server, or empty
	Says   string `json:"says"`
	Remedy string `json:"remedy,omitempty"`
}

func (f finding) row() []string {
	return []string{f.Check, f.State, cmp.Or(f.Where, "-"), f.Says, cmp.Or(f.Remedy, "-")}
}

// The doctor warns of an answer slower, clocks further apart and memory fuller than this.
const (
	slowAnswer  = 10 * time.Millisecond
	clocksApart = time.Second
	fullMemory  = 0.8
)

// doctor looks for what may keep limits from working, and says what helps.
func doctor(ctx context.Context, o *operator, _ []string) error {
	var mu sync.Mutex // masters are asked at the same time
	var found []finding
	err := o.masters(ctx, func(ctx context.Context, c *redis.Client) error {
		of := examine(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		found = append(found, of...)
		return nil
	})
	if err != nil {
		return o.explained(err)
	}
	slices.SortStableFunc(found, func(a, b finding) int { return strings.Compare(a.Where, b.Where) })
	found = append(found, o.examineBudgets(found), o.examineRights(ctx))
	found = append(found, o.examineOverrides(ctx)...)
	found = append(found, o.examineProcesses(ctx)...)
	found = append(found, o.examineProgram(ctx)...)
	keys, err := o.examineKeys(ctx)
	if err != nil {
		return err
	}
	found = append(found, keys...)
	if err := printEach(o, "CHECK STATE WHERE SAYS REMEDY", found, finding.row); err != nil {
		return err
	}
	if bad := len(slices.DeleteFunc(found, func(f finding) bool { return f.State != "bad" })); bad > 0 {
		return fmt.Errorf("%d checks say that something is wrong", bad)
	}
	return nil
}

// examine asks one server about itself.
func examine(ctx context.Context, c *redis.Client) (found []finding) {
	where := c.Options().Addr
	say := func(check, state, remedy, format string, args ...any) {
		if state == "ok" {
			remedy = ""
		}
		found = append(found, finding{check, state, where, fmt.Sprintf(format, args...), remedy})
	}
	warnIf := func(is bool) string { return map[bool]string{true: "warn", false: "ok"}[is] }

	worst, apart, err := answers(ctx, c)
	if err != nil {
		say("latency", "bad", "see whether the server runs, and -timeout", "%v", err)
		return found
	}
	say("latency", warnIf(worst > slowAnswer), "run programs near Redis; runtime.WithTimeout bounds what a call waits", "the slowest of %d answers took %v", probes, worst.Round(10*time.Microsecond))
	say("clock", warnIf(apart > clocksApart), "synchronise the clocks by NTP: overrides end by the clocks of programs", "%v from the clock here", apart.Round(time.Millisecond))

	text, err := c.Info(ctx).Result()
	if err != nil {
		say("server", "unknown", "give the user the right +info", "%v", err)
		return found
	}
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[name] = value
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(info[name], 10, 64)
		return n
	}
	version := info["redis_version"]
	state := "ok"
	if major, minor := versionOf(version); major < 6 || major == 6 && minor < 2 {
		state = "bad"
	}
	say("version", state, "the scripts need Redis 6.2 or later", "%s", version)
	state = "ok"
	if info["role"] != "master" {
		state = "bad"
	}
	say("role", state, "name the master with -redis, or Sentinels with -sentinel", "%s", info["role"])

	policy, most := info["maxmemory_policy"], number("maxmemory")
	say("eviction", warnIf(policy != "noeviction" && most > 0), "give limits a Redis with maxmemory-policy noeviction: an evicted key admits its caller anew", "%s", policy)
	share := 0.0
	if most > 0 {
		share = float64(number("used_memory")) / float64(most)
	}
	say("memory", warnIf(share > fullMemory), "see ratectl memory, and docs/operating.md: Redis is full", "%d bytes of %s", number("used_memory"), cmp.Or(strings.TrimPrefix(info["maxmemory"], "0"), "no bound"))
	switch {
	case info["rdb_last_bgsave_status"] == "err":
		say("persistence", "bad", "see the log of Redis: it may refuse writes until a snapshot succeeds (stop-writes-on-bgsave-error)", "the last snapshot failed")
	case info["aof_enabled"] == "1":
		say("persistence", "ok", "", "appendonly")
	default:
		say("persistence", "warn", "set appendonly yes, or keep the overrides somewhere else too: a restart takes back what was changed since the last snapshot", "snapshots alone, or none")
	}
	return found
}

// examineBudgets judges by the findings about the servers whether they keep the counts of
// limits of a day or longer.
func (o *operator) examineBudgets(found []finding) finding {
	var budgets []string
	for _, d := range o.known {
		if d.Period != runtime.NoPeriod || d.Window >= 24*time.Hour {
			budgets = append(budgets, d.Name)
		}
	}
	says := fmt.Sprintf("%d rules count for a day or longer", len(budgets))
	for _, f := range found {
		if (f.Check == "eviction" || f.Check == "persistence") && f.State != "ok" && len(budgets) > 0 {
			return finding{"budgets", "warn", "", says + ", and a server may lose that: " + strings.Join(budgets, ", "), "noeviction and appendonly yes; docs/guarantees.md says what Redis keeps"}
		}
	}
	return finding{"budgets", "ok", "", says, ""}
}

// probes is how many answers are timed.
const probes = 5

// answers returns how long the slowest of some answers took, and by how much the
// server's clock differs from ours at least.
func answers(ctx context.Context, c *redis.Client) (worst, apart time.Duration, err error) {
	if err := c.Ping(ctx).Err(); err != nil { // it connects
		return 0, 0, err
	}
	for i := range probes {
		begin := time.Now()
		theirs, err := c.Time(ctx).Result()
		if err != nil {
			return 0, 0, err
		}
		end := time.Now()
		worst = max(worst, end.Sub(begin))
		least := max(begin.Sub(theirs), theirs.Sub(end), 0)
		if i == 0 || least < apart {
			apart = least
		}
	}
	return worst, apart, nil
}

// versionOf returns the first two numbers of a version.
func versionOf(text string) (major, minor int) {
	parts := strings.SplitN(text+"..", ".", 3)
	major, _ = strconv.Atoi(parts[0])
	minor, _ = strconv.Atoi(parts[1])
	return major, minor
}

// examineRights executes the scripts that decide calls, without charging anything.
func (o *operator) examineRights(ctx context.Context) finding {
	for _, d := range o.known {
		if _, err := o.state(ctx, d, runtime.NewKey().AddString("ratectl doctor")); err != nil {
			return finding{"rights", "bad", "", fmt.Sprintf("rule %s: %v", d.Name, err), "see the rights of a Redis user in docs/running.md"}
		}
	}
	return finding{"rights", "ok", "", fmt.Sprintf("the scripts of %d rules can be executed", len(o.known)), ""}
}

// examineOverrides looks for overrides that have no effect.
func (o *operator) examineOverrides(ctx context.Context) []finding {
	if o.overrides == "" {
		return []finding{{"overrides", "unknown", "", "the hash is not named", "name it with -overrides"}}
	}
	entries, err := o.entries(ctx)
	if err != nil {
		return []finding{{"overrides", "bad", "", err.Error(), "ratectl override rm takes away what is broken; see ratectl history"}}
	}
	var found []finding
	now := time.Now()
	for _, e := range entries {
		named := e.Rule == "*" || slices.ContainsFunc(o.known, func(d declared) bool { return d.Name == e.Rule })
		switch {
		case !named:
			found = append(found, finding{"overrides", "warn", "", describe(e.Target) + ": no rule of the listing has this name", "remove it with ratectl override rm, or name the listing of that program"})
		case e.At(now) == runtime.KeyOverride{}:
			found = append(found, finding{"overrides", "warn", "", describe(e.Target) + ": it has ended", "ratectl override rm"})
		}
	}
	if len(found) == 0 {
		found = []finding{{"overrides", "ok", "", fmt.Sprintf("%d, all of known rules", len(entries)), ""}}
	}
	return found
}

// examineKeys looks for keys without an expiry, and for those of no rule.
func (o *operator) examineKeys(ctx context.Context) ([]finding, error) {
	groups := o.groups(func(declared, *runtime.KeyGroup) {})
	prefix := "rate_limit:"
	if o.namespace != "" {
		prefix = o.namespace + ":" + prefix
	}
	reports, orphan := &runtime.KeyGroup{Prefix: prefix + "{processes}:"}, &runtime.KeyGroup{Prefix: prefix} // a key counts for the longest
	groups = append(groups, orphan)
	if err := o.surveyed(ctx, append(groups, reports)); err != nil {
		return nil, err
	}
	keys, endless := int64(0), int64(0)
	for _, g := range groups {
		keys, endless = keys+g.Keys, endless+g.Endless
	}
	found := []finding{{"expiry", "ok", "", fmt.Sprintf("%d keys, each with an expiry", keys), ""}}
	if endless > 0 {
		found[0] = finding{"expiry", "warn", "", fmt.Sprintf("%d of %d keys have no expiry", endless, keys), "ratectl fix-expiry"}
	}
	if orphan.Keys > 0 {
		return append(found, finding{"orphans", "warn", "", fmt.Sprintf("%d keys start with %s and belong to no rule of the listing", orphan.Keys, prefix), "they go by themselves if they have an expiry; is the listing that of the version that runs?"}), nil
	}
	return append(found, finding{"orphans", "ok", "", "every key belongs to a rule of the listing", ""}), nil
}
