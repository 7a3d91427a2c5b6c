package raterueidis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/faults"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
)

// open makes a store on what go-redis would reach with some options.
func open(tb testing.TB, o *redis.UniversalOptions, opts ...runtime.RedisOption) *runtime.RedisStore {
	tb.Helper()
	option := optionOf(o)
	client := dial(tb, option)
	tb.Cleanup(client.Close)
	store, err := NewStore(client, *option, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

// TestStore wants of the store what every store must do, on every kind of Redis.
func TestStore(t *testing.T) {
	t.Parallel()
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
			storetest.RunFew(t, func(t *testing.T) storetest.Subject {
				return storetest.Subject{Store: store, Now: func() int64 { return time.Now().UnixMicro() }, Advance: time.Sleep}
			})
		})
	}
}

// TestFaults has faults happen to a Redis under load: no call is charged twice or waits
// for too long, and limits are in force again afterwards.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, fault := range faults.All() {
		if !effort.Full() && !fault.Quick || slices.Contains(fault.Classes, "pool") { // rueidis has no pool
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
				switch {
				case len(late) == 0:
					return
				case try == tries:
					t.Fatal(strings.Join(late, "\n"))
				}
			}
		})
	}
}

// TestSettings refuses settings with which limits would not hold, by their names.
func TestSettings(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	onlyReads := func(c rueidis.Completed) bool { return c.IsReadOnly() }
	for _, test := range []struct {
		name   string
		change func(*rueidis.ClientOption)
	}{
		{"", func(*rueidis.ClientOption) {}},
		{"", func(o *rueidis.ClientOption) { o.SendToReplicas = onlyReads }},
		{"", func(o *rueidis.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true }},
		{"", func(o *rueidis.ClientOption) { o.DisableAutoPipelining = true }},
		{"", func(o *rueidis.ClientOption) { o.AlwaysPipelining = true }},
		{"ConnLifetime", func(o *rueidis.ClientOption) { o.ConnLifetime = time.Hour }},
		{"ReplicaOnly", func(o *rueidis.ClientOption) { o.ReplicaOnly = true }},
		{"SendToReplicas", func(o *rueidis.ClientOption) { o.SendToReplicas = func(rueidis.Completed) bool { return true } }},
	} {
		option := rueidis.ClientOption{InitAddress: []string{addr}}
		made := option
		test.change(&option)
		if test.name == "" {
			made = option
		}
		client := dial(t, &made)
		defer client.Close()
		store, err := NewStore(client, option, runtime.WithTimeout(10*time.Second))
		if test.name != "" {
			if err == nil || !strings.Contains(err.Error(), test.name) {
				t.Errorf("%s: got %v", test.name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		limiter := runtime.New(store, runtime.WithFailurePolicy(runtime.FailClosed))
		limit := (&runtime.Rule{Prefix: "settings:", Window: time.Hour, Max: 100}).Limit(nil)
		if _, err := limiter.Take(context.Background(), limit); err != nil {
			t.Error(err)
		}
		if err := errors.Join(limiter.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	}
}
