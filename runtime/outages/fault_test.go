package outages

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/faults"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// comeback is how long it may take on a busy machine until Redis decides again
// that has come back, or that somebody has taken over from.
const comeback = 25 * time.Second

// faultTries is how often a fault happens if something takes too long: on a machine
// that is busy with other tests a Redis that is well may be as slow as one that is not.
const faultTries = 5

// quickFaults are those of a quick run: a server that does not answer, one that is not there,
// one that refuses to write, and one whose replies do not come.
var quickFaults = []string{"SIGSTOP", "SIGKILL, restarted", "out of memory, noeviction", "replies lost"}

// TestFaults has every fault happen to a Redis under load, and judges what the
// callers saw by each failure policy. A quick run has only some happen.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, fault := range faults.All() {
		if !effort.Full() && !fault.Quick || !effort.More() && !slices.Contains(quickFaults, fault.Name) {
			continue
		}
		test := func(tuned bool) func(*testing.T) {
			return func(t *testing.T) {
				t.Parallel()
				for try := 1; ; try++ {
					var late []string
					for _, seen := range faults.Run(t, fault, 600*time.Millisecond, tuned) {
						late = append(late, judge(t, fault, &seen)...)
					}
					if len(late) == 0 {
						return
					}
					if try == faultTries {
						t.Error(strings.Join(late, "\n"))
						return
					}
					t.Logf("try %d: %s", try, strings.Join(late, "\n"))
				}
			}
		}
		t.Run(string(fault.Where)+"/"+fault.Name, test(false))
		if fault.Where == faults.Network && len(fault.Classes) > 0 && (effort.Full() || fault.Name == "silence") {
			t.Run(string(fault.Where)+"/tuned client/"+fault.Name, test(true))
		}
	}
}

// judge fails the test for what is wrong on any machine, and returns what may be
// because this one is busy.
func judge(t *testing.T, fault faults.Fault, s *faults.Seen) (late []string) {
	said := func(format string, args ...any) string {
		return fmt.Sprintf("%v: "+format+"\n%+v", append(append([]any{s.Policy}, args...), *s)...)
	}
	wrong := func(format string, args ...any) {
		t.Helper()
		t.Error(said(format, args...))
	}
	slow := func(format string, args ...any) { late = append(late, said(format, args...)) }
	if complaint := s.Wrong(); complaint != "" {
		wrong("%s", complaint)
	}
	if complaint := s.Late(); complaint != "" {
		slow("%s", complaint)
	}
	if s.Calls == 0 {
		slow("nobody called")
	}
	if s.Max > runtime.DefaultTimeout+2*effort.Slack {
		slow("a call took %v", s.Max)
	}
	if s.Back > comeback {
		slow("the store decides again after %v", s.Back)
	}

	undecided := s.Calls - s.Store
	if len(fault.Classes) > 0 && undecided == 0 {
		slow("the store has decided everything")
	} else if len(fault.Classes) == 0 && s.Store == 0 {
		slow("the store has decided nothing")
	}
	// On a busy machine the time of a few may be over before it is. TestScriptFlush
	// has the time, and wants all to be decided.
	if s.Classes["noscript"] > s.Calls/10 {
		slow("a script that is not there has not been loaded")
	}
	if len(fault.Classes) > 0 && !slices.ContainsFunc(fault.Classes, func(class string) bool { return s.Classes[class] > 0 }) {
		slow("failures have none of the classes %v", fault.Classes)
	}
	if slices.Equal(fault.Classes, []string{"timeout"}) && s.Classes[observe.ClassBreakerOpen.String()] == 0 {
		slow("a Redis that gives no answer is asked all the time")
	}
	switch s.Policy {
	case runtime.FailOpen:
		if s.Admitted != undecided {
			wrong("%d of %d calls that the store did not decide were admitted", s.Admitted, undecided)
		}
	case runtime.FailClosed:
		if s.Undecided != undecided {
			wrong("%d of %d calls that the store did not decide were refused", s.Undecided, undecided)
		}
	case runtime.FailLocal:
		if s.Local != undecided {
			wrong("%d of %d calls that the store did not decide were decided here", s.Local, undecided)
		}
		// With fewer calls, or slow ones, there may be room for all.
		if undecided > 200 && (s.Admitted == 0 || s.Refused == 0 && s.Alone >= s.AloneBound) {
			wrong("of calls decided here %d were admitted and %d refused", s.Admitted, s.Refused)
		}
	}
	return late
}

// TestCrowdOnFrozenRedis has thousands of calls come together while Redis is
// frozen. The client has its default options and the calls have no deadline:
// each is answered within the store's timeout.
func TestCrowdOnFrozenRedis(t *testing.T) {
	calls := effort.Choose(2000, 5000) // the race detector follows no more than 8128 goroutines
	for name, stop := range map[string]func(*testing.T, *redistest.Server, *redis.Client){
		"cold pool": func(_ *testing.T, s *redistest.Server, _ *redis.Client) { s.Pause() },
		"warm pool": func(t *testing.T, s *redistest.Server, client *redis.Client) { fillPool(t, client); s.Pause() },
		"pool in use": func(t *testing.T, _ *redistest.Server, client *redis.Client) {
			conn := client.Conn()
			t.Cleanup(func() { _ = conn.Close() })
			ok(t, conn.Ping(context.Background()).Err())
		},
		"gone": func(_ *testing.T, s *redistest.Server, _ *redis.Client) { s.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			client := server.Client(t, func(o *redis.Options) {
				if name == "pool in use" {
					o.PoolSize = 1
				}
			})
			stop(t, server, client)
			crowd(t, client, calls)
			server.Resume()
		})
	}
	if !effort.More() {
		return
	}
	cluster := redistest.StartCluster(t)
	for _, warm := range []bool{false, true} {
		t.Run(fmt.Sprint("cluster, warm ", warm), func(t *testing.T) {
			client := cluster.Client(t)
			if warm {
				cluster.WaitReady()
				fillPool(t, client)
			}
			for _, node := range cluster.Nodes {
				node.Pause()
				defer node.Resume()
			}
			crowd(t, client, calls)
		})
	}
}

func fillPool(t *testing.T, client redis.UniversalClient) {
	limiter := onRedis(client)
	rule := &runtime.Rule{Name: "r", Prefix: "warm:", Window: time.Hour, Max: 1_000_000}
	concurrently(200, func(i int) {
		taken(t, limiter, rule.Limit(runtime.NewKey().AddInt(int64(i))))
	})
}

func crowd(t *testing.T, client redis.UniversalClient, calls int) {
	t.Helper()
	// What go-redis is left alone with takes five seconds.
	const most, tries = 4 * time.Second, 3 // on a machine that stands still at times
	longest := most + 1
	for range tries {
		if longest > most {
			store := runtime.NewRedisStore(client)
			c := faults.Together(t, runtime.New(store, quiet), calls)
			t.Logf("%+v; %v", c, bridge.StoreOf(store).Failures())
			longest = c.Max
		}
	}
	if longest > most {
		t.Errorf("a call took %v, want no more than %v on a slow machine", longest, most)
	}
}
