package script_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/internal/testkit/seed"
	"github.com/rategen/rategen/internal/testkit/zones"
	"github.com/rategen/rategen/runtime/internal/calendar"
	"github.com/rategen/rategen/runtime/internal/goredis"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

// TestEveryBoundary charges every period of every zone at its first microsecond and at its
// last, on Redis, in memory and, in a full run, on a cluster. The two charges are one budget,
// whose end is known to the microsecond.
func TestEveryBoundary(t *testing.T) {
	t.Parallel()
	from, to := effort.Choose(2011, 1990), effort.Choose(2012, 2100)
	deciders := map[string]func(*testing.T) decider{"redis": onServer, "memory": inMemory}
	if effort.Full() {
		deciders["cluster"] = onCluster
	}
	for name, decider := range deciders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, boundaries := decider(t), 0
			for i := 0; i < len(zones.Names); i += effort.Choose(9, 1) {
				boundaries += everyBoundary(t, d, zones.Names[i], from, to)
			}
			t.Logf("%d boundaries", boundaries)
		})
	}
}

// A decider takes charges to keys, each at a time of its own, in their order.
type decider func(trials []trial)

// A trial is charges at one time, and what is to be found about each.
type trial struct {
	at      int64
	charges []terms.Charge
	wants   []terms.Result
}

// A boundary is where a period begins.
type boundary struct {
	series    int
	at, until int64
}

// everyBoundary has a decider decide charges around every boundary in a zone, and returns
// how many there are.
func everyBoundary(t *testing.T, decide decider, zone string, from, to int) (n int) {
	table, err := zones.Read(zone, from, to)
	limittest.OK(t, err)
	charges := make([]terms.Charge, len(zones.All)) // by series
	var all []boundary
	for i, s := range zones.All {
		period, err := calendar.Load(s.Unit, zone, s.Anchor)
		limittest.OK(t, err)
		charges[i] = terms.Charge{Terms: terms.Terms{Algorithm: algorithm.Calendar, Max: 10, Period: period}, Key: fmt.Append(nil, "{", zone, "}", i), Cost: 1}
		begins := table.Begins(s)
		for j := range len(begins) - 1 {
			all = append(all, boundary{i, begins[j], begins[j+1]})
		}
	}
	slices.SortFunc(all, func(a, b boundary) int { return int(a.at - b.at) })
	var trials []trial
	begun := make([]bool, len(charges))
	for len(all) > 0 {
		at := all[0].at
		last, first := trial{at: at - 1}, trial{at: at}
		for ; len(all) > 0 && all[0].at == at; all = all[1:] {
			b := all[0]
			c := charges[b.series]
			if begun[b.series] {
				last.charges = append(last.charges, c)
				last.wants = append(last.wants, terms.Result{Allowed: true, Remaining: 8, ResetAfter: time.Microsecond})
			}
			first.charges = append(first.charges, charges[b.series])
			first.wants = append(first.wants, terms.Result{Allowed: true, Remaining: 9, ResetAfter: terms.Micros(b.until - at)})
			begun[b.series] = true
			n++
		}
		if len(last.charges) > 0 {
			trials = append(trials, last)
		}
		trials = append(trials, first)
	}
	for some := range slices.Chunk(trials, 100) {
		decide(some)
		for _, trial := range some {
			for i, c := range trial.charges {
				if got, want := c.Result, trial.wants[i]; got.Allowed != want.Allowed || got.Remaining != want.Remaining || got.ResetAfter != want.ResetAfter {
					t.Fatalf("%s at %v: %+v, want %+v", c.Key, time.UnixMicro(trial.at).UTC(), got, want)
				}
			}
		}
	}
	return n
}

// inMemory decides by the states of this process.
func inMemory(*testing.T) decider {
	states := memstate.New(1 << 20)
	return func(trials []trial) {
		for _, trial := range trials {
			for i := range trial.charges {
				c := &trial.charges[i]
				c.SetClock(trial.at)
				states.Take(trial.at, c)
			}
		}
	}
}

// onServer decides by the scripts on a single server.
func onServer(t *testing.T) decider {
	return onRedis(t, redistest.Start(t).Client(t, func(o *redis.Options) { o.ReadTimeout = time.Minute }))
}

// onCluster decides by the scripts on a cluster.
func onCluster(t *testing.T) decider {
	cluster := redistest.StartCluster(t)
	var nodes []*redis.Client
	for _, node := range cluster.Nodes {
		nodes = append(nodes, node.Client(t))
	}
	return onRedis(t, cluster.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout = time.Minute }), nodes...)
}

// onRedis decides by the scripts, which it loads into all nodes. They take the time from a
// list with the times of the trials to come, in the slot of their zone, and keep keys for long,
// since these expire by Redis's own clock. One client in 64 has a clock that is up to two days
// wrong.
func onRedis(t *testing.T, client redis.UniversalClient, nodes ...*redis.Client) decider {
	const clocks, days = "clocks", int64(48 * time.Hour / time.Microsecond)
	server := goredis.New(client)
	library := script.Library{Change: strings.NewReplacer(
		"local time = redis.call('TIME')", "local clock = redis.call('LPOP', string.match(KEYS[1], '^{[^}]*}') .. '"+clocks+"') + 0",
		"local clock = time[1] * 1000000 + time[2]", "",
		"(at - clock) / 1000) + 100", "(at - clock) / 1000) + 1000000",
	).Replace}
	load := func(server rediswire.Server) {
		limittest.OK(t, library.Load(t.Context(), server, []terms.Terms{{Algorithm: algorithm.Calendar}}))
	}
	if len(nodes) == 0 {
		load(server)
	}
	for _, node := range nodes {
		load(goredis.New(node))
	}
	asked, random := 0, seed.New(t)
	// send has Redis execute scripts, and those once more whose periods are not those of its clock.
	var send func(slot string, executions []*script.Execution, times []any)
	send = func(slot string, executions []*script.Execution, times []any) {
		limittest.OK(t, client.RPush(t.Context(), slot+clocks, times...).Err())
		library.Send(t.Context(), server, executions)
		for i, e := range executions {
			if clock, elsewhen := script.Elsewhen(e.Err); elsewhen {
				if clock != times[i] {
					t.Fatalf("Redis's clock shows %d, and it is %d", clock, times[i])
				}
				asked++
				e.Refill(clock)
				send(slot, executions[i:i+1], times[i:i+1])
			} else if e.Err != nil {
				t.Fatal(e.Err)
			}
		}
	}
	t.Cleanup(func() {
		if asked == 0 {
			t.Error("no client was told that its clock is wrong")
		}
		t.Logf("%d scripts were sent again, for another period", asked)
	})
	return func(trials []trial) {
		slot, _, _ := strings.Cut(string(trials[0].charges[0].Key), "}")
		var executions []*script.Execution
		var times []any
		for i, trial := range trials {
			calls := make([]terms.Call, len(trial.charges))
			for j := range calls {
				calls[j].Charges = trial.charges[j : j+1]
			}
			e, shown, wrong := new(script.Execution), trial.at, random.IntN(64) == 0
			if wrong {
				shown += random.Int64N(2*days) - days
			}
			e.Fill(script.Take, calls, slices.Repeat([]int64{1}, len(calls)), make([]script.Outcome, len(calls)), shown)
			executions, times = append(executions, e), append(times, trial.at)
			if wrong || i == len(trials)-1 { // what is sent again is to come before all that follows
				send(slot+"}", executions, times)
				executions, times = nil, nil
			}
		}
	}
}
