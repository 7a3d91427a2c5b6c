package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// The doctor warns of an answer slower, clocks further apart and memory fuller than this.
const (
	slowAnswer  = 10 * time.Millisecond
	clocksApart = time.Second
	fullMemory  = 0.8
)

// examine asks one server about itself.
func (c *doctorCommand) examine(ctx context.Context, server *redis.Client) {
	say := func(check, state, remedy, format string, args ...any) {
		c.say(check, state, server.Options().Addr, remedy, format, args...)
	}
	worst, apart, err := answers(ctx, server)
	if err != nil {
		say("latency", "bad", "see whether the server runs, and -timeout", "%v", err)
		return
	}
	say("latency", stateIf("warn", worst > slowAnswer), "run programs near Redis; runtime.WithTimeout bounds what a call waits", "the slowest of %d answers took %v", probes, worst.Round(10*time.Microsecond))
	say("clock", stateIf("warn", apart > clocksApart), "synchronise the clocks by NTP: overrides end by the clocks of programs", "%v from the clock here", apart.Round(time.Millisecond))

	text, err := server.Info(ctx).Result()
	if err != nil {
		say("server", "unknown", "give the user the right +info", "%v", err)
		return
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
	var major, minor int
	_, _ = fmt.Sscanf(info["redis_version"], "%d.%d", &major, &minor)
	say("version", stateIf("bad", major < 6 || major == 6 && minor < 2), "the scripts need Redis 6.2 or later", "%s", info["redis_version"])
	say("role", stateIf("bad", info["role"] != "master"), "name the master with -redis, or Sentinels with -sentinel", "%s", info["role"])
	policy, most := info["maxmemory_policy"], number("maxmemory")
	say("eviction", stateIf("warn", policy != "noeviction" && most > 0), "give limits a Redis with maxmemory-policy noeviction: an evicted key admits its caller anew", "%s", policy)
	used := number("used_memory")
	say("memory", stateIf("warn", most > 0 && float64(used) > fullMemory*float64(most)), "see ratectl memory, and docs/operating.md: Redis is full", "%d bytes of %s", used, cmp.Or(strings.TrimPrefix(info["maxmemory"], "0"), "no bound"))
	switch {
	case info["rdb_last_bgsave_status"] == "err":
		say("persistence", "bad", "see the log of Redis: it may refuse writes until a snapshot succeeds (stop-writes-on-bgsave-error)", "the last snapshot failed")
	case info["aof_enabled"] == "1":
		say("persistence", "ok", "", "appendonly")
	default:
		say("persistence", "warn", "set appendonly yes, or keep the overrides somewhere else too: a restart takes back what was changed since the last snapshot", "snapshots alone, or none")
	}
}

// stateIf returns a state, or ok.
func stateIf(state string, is bool) string {
	if is {
		return state
	}
	return "ok"
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

// examineProcesses looks for what does not hold in the processes that report to Redis.
func (c *doctorCommand) examineProcesses(ctx context.Context) {
	processes, err := c.processes(ctx)
	say := func(state, remedy, format string, args ...any) {
		c.say("processes", state, "", remedy, format, args...)
	}
	switch {
	case err != nil:
		say("unknown", "give the user the right +hvals", "%v", err)
		return
	case len(processes) == 0:
		say("unknown", "see whether one runs, in this namespace: each reports ten seconds after its start, unless it has WithoutReports", "none reports to this Redis")
		return
	}
	inForce := ""
	switch f := c.followed(ctx, processes); {
	case c.overrides == "":
	case f.Follow == 0:
		say("bad", "name their hash by -overrides, or have them follow this one: runtime.WithOverrides(override.Redis(...))", "%v", f)
	case f.inForce < f.Follow:
		say("warn", "ask again in a minute; then see what those have found", "the overrides are in force in %d of %d that follow the hash", f.inForce, f.Follow)
	default:
		inForce = fmt.Sprintf(", the overrides are in force in %d of the %[1]d that follow the hash", f.Follow)
	}
	terms, findings, cut := map[string]map[string]int{}, map[observe.Finding]int{}, false // in how many
	for _, p := range processes {
		cut = cut || len(p.Rules) == runtime.MaxReported
		for _, rule := range p.Rules {
			if terms[rule.Name] == nil {
				terms[rule.Name] = map[string]int{}
			}
			terms[rule.Name][rule.Terms]++
		}
		for _, f := range p.Findings {
			f.Since = time.Time{} // which differs
			findings[f]++
		}
	}
	c.compareTerms(terms, cut, say)
	for _, f := range slices.SortedFunc(maps.Keys(findings), func(a, b observe.Finding) int { return cmp.Compare(a.String(), b.String()) }) {
		says := strings.Join(strings.Fields(f.Code+" "+f.Rule+" "+f.Detail), " ")
		say("warn", f.Help, "%s: %s (in %d of %d)", says, f.Text, findings[f], len(processes))
	}
	if !c.has("processes") {
		say("ok", "", "%d report%s, and all that they declare is in force, as far as they know", len(processes), inForce)
	}
}

// compareTerms looks at which terms of rules are in how many processes. If a process has more
// rules than it reports, it is not known which are in none.
func (c *doctorCommand) compareTerms(terms map[string]map[string]int, cut bool, say func(state, remedy, format string, args ...any)) {
	var missing []string
	for _, name := range c.ruleNames() {
		if terms[name] == nil && !cut && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		say("warn", "construct the generated wrapper, or name the listing of this program", "none has constructed what limits %s", strings.Join(missing, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(terms)) {
		var each []string
		for _, text := range slices.Sorted(maps.Keys(terms[name])) {
			each = append(each, fmt.Sprintf("%s in %d", text, terms[name][text]))
		}
		if len(each) > 1 {
			say("warn", "deploy one version everywhere", "rule %s differs: %s", name, strings.Join(each, "; "))
		}
	}
}

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

// say adds a finding. What is ok needs no remedy.
func (c *doctorCommand) say(check, state, where, remedy, format string, args ...any) {
	if state == "ok" {
		remedy = ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found = append(c.found, finding{check, state, where, fmt.Sprintf(format, args...), remedy})
}

// has reports whether a check has found something.
func (c *doctorCommand) has(check string) bool {
	return slices.ContainsFunc(c.found, func(f finding) bool { return f.Check == check })
}
