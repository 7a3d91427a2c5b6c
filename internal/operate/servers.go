package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// The doctor warns of an answer slower, clocks further apart and memory fuller than this.
const (
	slowAnswer  = 10 * time.Millisecond
	serverApart = time.Second
	fullMemory  = 0.8
)

func (d *doctor) examine(ctx context.Context, server *redis.Client) {
	where := AddrOf(ctx, server)
	say := func(check, state, remedy, format string, args ...any) {
		d.say(check, state, where, remedy, format, args...)
	}
	worst, apart, err := answers(ctx, server)
	if err != nil {
		say("latency", "bad", "see whether the server runs, and -timeout", "%v", err)
		return
	}
	say("latency", stateIf("warn", worst > slowAnswer), "run programs near Redis; runtime.WithTimeout bounds what a call waits", "the slowest of %d answers took %v", probes, worst.Round(10*time.Microsecond))
	say("clock", stateIf("warn", apart > serverApart), "synchronise the clocks by NTP: windows of the calendar and -until are by both", "%v from the clock here", apart.Round(time.Millisecond))

	d.examineWrites(ctx, server, say)
	info, err := infoOf(ctx, server)
	if err != nil {
		say("server", "unknown", "give the user the right +info", "%v", err)
		return
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
	evicts := policy
	switch {
	case most == 0 || policy == "noeviction":
	case strings.HasPrefix(policy, "allkeys"):
		evicts += fmt.Sprintf(": it may take counts, blocks, the overrides with their history, and what processes report; %s keys were evicted so far", info["evicted_keys"])
	default:
		evicts += fmt.Sprintf(": it may take counts, blocks and what processes report, though no overrides, which never expire; %s keys were evicted so far", info["evicted_keys"])
	}
	say("eviction", stateIf("bad", evicts != policy), "give limits a Redis with maxmemory-policy noeviction: an evicted key admits its caller anew", "%s", evicts)
	used := number("used_memory")
	say("memory", stateIf("warn", most > 0 && float64(used) > fullMemory*float64(most)), "see ratectl memory, and docs/operating.md: Redis is full", "%d bytes of %s", used, cmp.Or(strings.TrimPrefix(info["maxmemory"], "0"), "no bound"))
	if info["rdb_last_bgsave_status"] == "err" {
		say("persistence", "bad", "see the log of Redis: it may refuse writes until a snapshot succeeds (stop-writes-on-bgsave-error)", "the last snapshot failed")
	} else if info["aof_enabled"] == "1" {
		say("persistence", "ok", "", "appendonly")
	} else {
		say("persistence", "warn", "set appendonly yes, or keep the overrides somewhere else too: a restart takes back what was changed since the last snapshot", "snapshots alone, or none")
	}
}

// AddrOf returns the address of a server, also of one that Sentinels have named.
func AddrOf(ctx context.Context, server *redis.Client) string {
	if addr := server.Options().Addr; addr != "FailoverClient" {
		return addr
	}
	info, _ := server.ClientInfo(ctx).Result()
	if info == nil || info.LAddr == "" {
		return "the master that the Sentinels name"
	}
	return info.LAddr
}

func infoOf(ctx context.Context, server *redis.Client) (map[string]string, error) {
	text, err := server.Info(ctx).Result()
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[name] = value
	}
	return info, err
}

// tryWrite writes a key of its own to a server, which lives for a millisecond.
func (c *Core) tryWrite(ctx context.Context, server *redis.Client) (err error) {
	for i := range maxSlotTries { // a node of a cluster takes the keys of its slots
		err = server.Set(ctx, fmt.Sprintf("%s%%check:doctor:%d", c.prefix(), i), "", time.Millisecond).Err()
		if !Replied(err, "MOVED") && !Replied(err, "ASK") {
			break
		}
	}
	return err
}

// Doubt returns an error if a server refuses writes, and warns of one that has evicted keys: what is counted does not say
// what becomes of calls then.
func (c *Core) Doubt(ctx context.Context) error {
	c.WarnEvicted(ctx)
	return c.Writable(ctx)
}

// WarnEvicted warns of servers that have evicted keys.
func (c *Core) WarnEvicted(ctx context.Context) {
	_ = c.Masters(ctx, func(ctx context.Context, server *redis.Client) error {
		info, _ := infoOf(ctx, server) // not every user may ask
		if evicted := info["evicted_keys"]; strings.Trim(evicted, "0") != "" && info["maxmemory_policy"] != "noeviction" {
			c.warnf("%s has evicted %s keys, counts, blocks or overrides perhaps: see ratectl doctor", AddrOf(ctx, server), evicted)
		}
		return nil
	})
}

// Writable returns an error if a server refuses writes.
func (c *Core) Writable(ctx context.Context) error {
	return c.Masters(ctx, func(ctx context.Context, server *redis.Client) error {
		if err := c.tryWrite(ctx, server); RefusesWrites(err) != "" {
			return fmt.Errorf("%s refuses every write, so that failure policies decide calls, whatever is counted: %w", AddrOf(ctx, server), err)
		}
		return nil
	})
}

func (d *doctor) examineWrites(ctx context.Context, server *redis.Client, say func(check, state, remedy, format string, args ...any)) {
	err := d.tryWrite(ctx, server)
	remedy := RefusesWrites(err)
	switch {
	case err == nil:
		say("writes", "ok", "", "a key was written")
	case remedy != "":
		say("writes", "bad", remedy, "it refuses every write, so that failure policies decide: %v", err)
	case Replied(err, "NOPERM"):
		say("writes", "unknown", "give the user +set on the keys of the limits", "whether it takes writes was not tried: %v", err)
	default:
		say("writes", "unknown", "see whether the server runs, and -timeout", "%v", err)
	}
}

// maxSlotTries is how many keys are tried until one is in a slot of a node: of 100 nodes, nearly always.
const maxSlotTries = 1000

func stateIf(state string, is bool) string {
	if is {
		return state
	}
	return "ok"
}

const probes = 5

// answers returns how long the slowest of some answers took, and by how much the
// server's clock differs from ours at least.
func answers(ctx context.Context, c *redis.Client) (worst, apart time.Duration, err error) {
	if err := c.Time(ctx).Err(); err != nil { // it connects; PING is refused where snapshots fail
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

// warnOfClocks warns if the clocks of Redis and of this machine are apart: counts have the times
// of the clock that they were made by.
func (c *Core) warnOfClocks(ctx context.Context) {
	_ = c.Masters(ctx, func(ctx context.Context, server *redis.Client) error {
		if _, apart, err := answers(ctx, server); err == nil && apart > serverApart {
			c.warnf("the clock of %s is %v from the clock here: counts mean times of the Redis that they were made in, so windows end early or late in another", AddrOf(ctx, server), apart)
		}
		return nil
	})
}

// examineProcesses looks for what does not hold in the processes that report to Redis.
func (d *doctor) examineProcesses(ctx context.Context) {
	processes, err := d.Processes(ctx)
	say := func(state, remedy, format string, args ...any) {
		d.say("processes", state, "", remedy, format, args...)
	}
	if err != nil {
		say("unknown", "give the user the right +hscan", "%v", err)
		return
	}
	if len(processes) == 0 {
		say("unknown", "see whether one runs, in this namespace: each reports ten seconds after its start, unless it has WithoutReports", "none reports to this Redis")
		return
	}
	if d.Hash != "" {
		f, err := d.Following(ctx)
		switch {
		case err != nil:
			say("unknown", "", "who follows the overrides: %v", err)
		case f.Follow == 0:
			say("bad", "name their hash by -overrides, or have them follow this one: runtime.WithOverrides(override.Redis(...))", "%v", f)
		case f.InForce < f.Follow:
			say("warn", "see what that process has found, and ratectl processes", "the overrides are %s", f.State())
		default:
			say("ok", "", "the overrides are %s", f.State())
		}
	}
	s := SurveyOf(processes, d.Names())
	if silent := len(processes) - len(s.Processes); silent > 0 {
		say("warn", "they have ended without Limiter.Close, hang, or do not reach Redis: ratectl processes", "%d of %d give no sign of life", silent, len(processes))
	}
	for _, p := range s.Apart {
		say("warn", "synchronise its clock by NTP", "by that of Redis, the clock of %s is %s", p.Name, ClockText(p.Behind))
	}
	if len(s.Missing) > 0 {
		say("warn", "construct the generated wrapper, or name the listing of this program", "none has constructed what limits %s", someOf(s.Missing))
	}
	for _, r := range s.Differ[:min(len(s.Differ), maxNamed)] {
		say("warn", "deploy one version everywhere", "rule %s differs: %v", r.Rule, r)
	}
	if more := len(s.Differ) - maxNamed; more > 0 {
		say("warn", "deploy one version everywhere", "and %d more rules differ", more)
	}
	for _, f := range s.Findings {
		say(f.State(), f.Help, "%s", f.About(len(s.Processes)))
	}
	for _, k := range CallsOf(processes).Keys {
		if n := slices.IndexFunc(d.Rules, func(r Rule) bool { return r.Name == k.Rule }); k.PerSecond >= hot && n >= 0 {
			d.say("calls", "warn", "", Remedy(d.Rules[n].Rule), "Redis is asked %.0f times a second about %s of rule %s, %.0f%% of all", k.PerSecond, k.Key, k.Rule, 100*k.Share)
		}
	}
	if !slices.ContainsFunc(d.found, func(f Check) bool { return f.Check == "processes" && f.State != "ok" }) {
		say("ok", "", "%d report, and all that they declare is in force, as far as they know", len(processes))
	}
}

func someOf(names []string) string {
	text := strings.Join(names[:min(len(names), 2*maxNamed)], ", ")
	if more := len(names) - 2*maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
