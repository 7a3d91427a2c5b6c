package wiretest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/faults"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
)

// RunStore runs what a store over another client than go-redis must do.
func RunStore(t *testing.T, open faults.Open) {
	for name, run := range map[string]func(*testing.T, faults.Open){
		"suite": onAllKinds, "faults": underFaults, "nothing private": nothingPrivate,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, open)
		})
	}
}

// onAllKinds: the store does what every store must do, on every kind of Redis.
func onAllKinds(t *testing.T, open faults.Open) {
	for name, reach := range map[string]func(*testing.T) *redis.UniversalOptions{
		"standalone": func(t *testing.T) *redis.UniversalOptions {
			return &redis.UniversalOptions{Addrs: []string{redistest.Start(t).Addr}}
		},
		"cluster": func(t *testing.T) *redis.UniversalOptions {
			return &redis.UniversalOptions{Addrs: redistest.StartCluster(t).Addrs()}
		},
		"sentinel": func(t *testing.T) *redis.UniversalOptions {
			sentinel := redistest.StartSentinel(t)
			return &redis.UniversalOptions{Addrs: sentinel.Addrs(), MasterName: sentinel.MasterName}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := open(t, reach(t), runtime.WithTimeout(20*time.Second))
			documents.RunFew(t, func(t *testing.T) documents.Subject {
				return documents.Subject{Store: store, Now: func() int64 { return time.Now().UnixMicro() }, Advance: time.Sleep}
			})
		})
	}
}

// underFaults: when faults happen to a Redis under load no call is charged twice or waits
// for too long, and limits are in force again afterwards.
func underFaults(t *testing.T, open faults.Open) {
	for _, fault := range faults.All() {
		if !effort.Full() && !fault.Quick || slices.Contains(fault.Classes, "pool") { // the client has no pool
			continue
		}
		t.Run(string(fault.Where)+"/"+fault.Name, func(t *testing.T) {
			t.Parallel()
			const tries = 5 // on a machine that is busy with other tests
			for try := 1; ; try++ {
				var late []string
				for _, seen := range faults.RunOn(t, fault, 600*time.Millisecond, open) {
					if wrong := seen.Wrong(); wrong != "" {
						t.Errorf("%v: %s\n%+v", seen.Policy, wrong, seen)
					}
					if slow := seen.Late(); slow != "" {
						late = append(late, slow)
					}
					// A machine that answers too late with what has happened has only timeouts.
					if n := seen.Calls - seen.Store; len(fault.Classes) > 0 && n > 0 &&
						!slices.ContainsFunc(fault.Classes, func(class string) bool { return seen.Classes[class] > 0 }) {
						late = append(late, fmt.Sprintf("%v: failures have none of the classes %v\n%+v", seen.Policy, fault.Classes, seen))
					}
				}
				if len(late) == 0 {
					return
				}
				if try == tries {
					t.Fatal(strings.Join(late, "\n"))
				}
			}
		})
	}
}
