package script_test

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime/internal/calendar"
	"github.com/rategen/rategen/runtime/internal/goredis"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// plain is a script of commands that everybody knows, which takes some three and a half milliseconds
// where terms.MaxWork was measured to take one. No work of a batch may take longer. The dearest, of
// permits and of shares, takes as long as 2,850 to 3,050 of the commands, by machine and moment.
var plain = redis.NewScript(`for i = 1, 3600 do redis.call('SET', KEYS[1], i) end`)

// TestWork has Redis do as much as is a batch's work, of every kind, and wants that to be
// done soon, since nobody else can use Redis meanwhile. A quick run has calls of one limit,
// on keys that hold nothing yet.
func TestWork(t *testing.T) {
	client := redistest.Start(t).Client(t, func(o *redis.Options) { o.ReadTimeout = time.Minute }) // machines are busy
	s := &stopwatch{tb: t, client: client}
	for a := range algorithm.Algorithms {
		var most float64
		for _, stored := range effort.ChooseMore([]int64{0}, []int64{0, 20_000}) {
			for _, limits := range effort.Choose([]int{1}, []int{1, 8}) {
				for _, cost := range effort.Choose([]int64{1, 250}, []int64{1, 5, 50, 250}) {
					took, atMost := s.kinds(a, stored, limits, cost)
					for name, d := range took {
						most = max(most, float64(d)/float64(atMost))
						if d > atMost {
							t.Errorf("algorithm %d, %d stored, %d limits, cost %d: to %s took %v, want at most %v, as plain commands take", a, stored, limits, cost, name, d, atMost)
						}
					}
				}
			}
		}
		t.Logf("algorithm %d: at most %.2f of what plain commands take", a, most)
	}
}

// A stopwatch measures scripts by Redis's own clock.
type stopwatch struct {
	tb      testing.TB
	client  *redis.Client
	library script.Library
}

// kinds returns the least that the operations took of a few times, for as many calls as
// are the work of a batch, and the least that the plain script took beside them. What else
// the machine does only adds to both, so it tries again while something seems to take too
// long.
func (s *stopwatch) kinds(a algorithm.Algorithm, stored int64, limits int, cost int64) (least map[string]time.Duration, atMost time.Duration) {
	least = map[string]time.Duration{}
	measure := func(name string, op script.Operation, calls []terms.Call) {
		took := s.execute(op, calls)
		if before, ok := least[name]; ok {
			took = min(took, before)
		}
		least[name] = took
	}
	atMost = math.MaxInt64
	for try := 0; try == 0 || try < 30 && slices.Max(slices.Collect(maps.Values(least))) > atMost; try++ {
		s.client.FlushAll(s.tb.Context())
		atMost = min(atMost, s.plain())
		calls := callsOf(a, limits, cost)
		if stored > 0 {
			s.execute(script.Take, callsOf(a, limits, stored)[:1]) // the first call's keys
		}
		if calls = fitting(calls); len(calls) == 1 {
			return nil, 0 // a call that is alone may be more
		}
		measure("take", script.Take, calls)
		settled := func(cost func(int64) int64) []terms.Call {
			var all []terms.Call
			for i := range calls {
				for _, c := range calls[i].Charges {
					c.Cost = cost(c.Cost)
					all = append(all, terms.Call{Charges: []terms.Charge{c}})
				}
			}
			return fitting(all)
		}
		measure("charge more", script.Settle, settled(func(n int64) int64 { return n }))
		if a == algorithm.Permits {
			measure("renew", script.Renew, settled(func(n int64) int64 { return n }))
		}
		measure("give back", script.Settle, settled(func(n int64) int64 { return -n }))
	}
	return least, atMost
}

func fitting(calls []terms.Call) []terms.Call {
	n, _ := terms.Fit(calls)
	return calls[:n]
}

// callsOf returns calls on keys of their own, as many as are a batch's work if they cost 1.
func callsOf(a algorithm.Algorithm, limits int, cost int64) []terms.Call {
	t := terms.Terms{Algorithm: a, Window: time.Hour.Microseconds(), Max: 100_000}
	switch a {
	case algorithm.Calendar:
		t.Period, _ = calendar.Load(spec.Month, "", 1)
	case algorithm.Counter:
		t.Param = time.Minute.Microseconds()
	case algorithm.LayeredCounter:
		t.Param, t.More = time.Minute.Microseconds(), 10
	case algorithm.TokenBucket, algorithm.LeakyBucket:
		t.Param, t.More = t.Max, -1
	case algorithm.Queue:
		t.Param, t.More = t.Max, t.Window
	case algorithm.DividedTokens, algorithm.DividedLeaky:
		t.Param, t.More = t.Max, t.Max/4
	}
	calls := make([]terms.Call, 128/limits)
	for i := range calls {
		for j := range limits {
			calls[i].Charges = append(calls[i].Charges, terms.Charge{Terms: t, Cost: cost, Key: fmt.Appendf(nil, "work:of:a:rule:%d:%d", i, j)})
		}
	}
	return calls
}

var executed = regexp.MustCompile(`cmdstat_evalsha:calls=1,usec=(\d+)`)

// execute executes a script, which every call must pass, and returns how long it took.
func (s *stopwatch) execute(op script.Operation, calls []terms.Call) time.Duration {
	s.tb.Helper()
	ctx := s.tb.Context()
	times := make([]int64, len(calls))
	for i := range times {
		times[i] = 1
	}
	for {
		e := new(script.Execution)
		e.Fill(op, calls, times, make([]script.Outcome, len(calls)), time.Now().UnixMicro())
		s.client.ConfigResetStat(ctx)
		s.library.Send(ctx, goredis.New(s.client), []*script.Execution{e})
		if script.Unknown(e.Err) {
			s.client.ScriptLoad(ctx, s.library.Source(e))
			continue
		}
		for i := range calls {
			if e.Err != nil || calls[i].Err != nil {
				s.tb.Fatal(e.Err, calls[i].Err)
			}
		}
		return s.read()
	}
}

// plain executes the plain script and returns how long it took.
func (s *stopwatch) plain() time.Duration {
	s.tb.Helper()
	ctx, keys := s.tb.Context(), []string{"plain"}
	plain.Load(ctx, s.client)
	s.client.ConfigResetStat(ctx)
	if err := plain.EvalSha(ctx, s.client, keys).Err(); err != nil && err != redis.Nil {
		s.tb.Fatal(err)
	}
	return s.read()
}

// read returns how long the script took that has been executed.
func (s *stopwatch) read() time.Duration {
	s.tb.Helper()
	found := executed.FindStringSubmatch(s.client.Info(s.tb.Context(), "commandstats").Val())
	if found == nil {
		s.tb.Fatal("Redis has not counted the script")
	}
	n, _ := strconv.Atoi(found[1])
	return time.Duration(n) * time.Microsecond
}
