package outages

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/powercut"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

var month = &runtime.Rule{Name: "month", Algorithm: runtime.FixedWindow, Period: rule.Month, Max: 1 << 40}

// A spender charges a month's budget, one call after the other, until its Redis fails.
type spender struct {
	done  sync.WaitGroup
	acked []time.Time // when each charge was known to be made
}

func spend(limiter *runtime.Limiter) *spender {
	s := new(spender)
	s.done.Go(func() {
		for {
			if _, err := limiter.Take(context.Background(), month.Limit(nil)); err != nil {
				return
			}
			s.acked = append(s.acked, time.Now())
		}
	})
	return s
}

// lost returns how many charges a Redis has lost that were known to be made, and how long
// before a time the first of them was.
func (s *spender) lost(t *testing.T, client redis.UniversalClient, at time.Time) (charges int, age time.Duration) {
	t.Helper()
	s.done.Wait()
	used := int(month.Max - left(t, onRedis(client), month.Limit(nil)))
	if charges = len(s.acked) - used; charges <= 0 {
		return 0, 0 // the last one was made, and not answered
	}
	return charges, at.Sub(s.acked[used])
}

// survivor starts a Redis with a limiter that gives up soon.
func survivor(t *testing.T, args ...string) (*redistest.Server, *redis.Client, *runtime.Limiter) {
	t.Helper()
	server := redistest.Start(t, args...)
	client := server.Client(t, func(o *redis.Options) { o.MaxRetries, o.DialerRetries = -1, 1 })
	limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second), atOnce), quiet, closed)
	return server, client, limiter
}

// everySecond are the arguments of a Redis that writes an append-only file and syncs it once
// a second, which is its default.
var everySecond = []string{"--appendonly", "yes", "--appendfsync", "everysec"}

// TestPowerCut cuts the power of a Redis while a budget is spent. With appendfsync everysec
// about the last second of charges is gone, and with always none is. With -count it measures
// how much that is.
func TestPowerCut(t *testing.T) {
	powercut.Watch(t)
	for _, c := range []struct {
		name string
		args []string
		runs time.Duration
		most time.Duration

		tries int
	}{
		{"everysec", everySecond, 3 * time.Second, 2500 * time.Millisecond, 3}, // a sync may take a second itself: then the next waits
		{"always", []string{"--appendonly", "yes", "--appendfsync", "always"}, 300 * time.Millisecond, 0, 1},
	} {
		if c.most > 0 && !effort.Full() {
			continue // it takes some seconds, and nothing may run beside it
		}
		again(t, c.tries, c.name, func() string {
			server, client, limiter := survivor(t, c.args...)
			dir := client.ConfigGet(t.Context(), "dir").Val()["dir"]
			s := spend(limiter)
			time.Sleep(c.runs + rand.N(c.runs/3)) // in which it spends, up to any moment between two syncs
			at := time.Now()
			server.Kill()
			s.done.Wait() // or it would go on with the server that is started next
			bytes := powercut.Cut(t, dir, ".aof")
			server.Restart()
			charges, age := s.lost(t, client, at)
			t.Logf("%s: %d of %d charges are lost, of the last %v, %d bytes", c.name, charges, len(s.acked), age.Round(time.Millisecond), bytes)
			if age > c.most || len(s.acked) == 0 {
				return fmt.Sprintf("%d of %d charges are lost, of the last %v, want %v at most", charges, len(s.acked), age, c.most)
			}
			return ""
		})
	}
}

// again tries something up to so many times: a busy disk syncs late, and a busy machine copies late.
func again(t *testing.T, tries int, name string, try func() (wrong string)) {
	t.Helper()
	wrong := ""
	for range tries {
		if wrong = try(); wrong == "" {
			return
		}
		t.Logf("%s: %s", name, wrong)
	}
	t.Errorf("%s: %s", name, wrong)
}

// TestKilledRedis kills Redis while a budget is spent. What it has written to an append-only
// file is there, synced or not; a snapshot has what was spent before it; without either all
// is gone.
func TestKilledRedis(t *testing.T) {
	t.Parallel()
	fullOnly(t)
	for name, c := range map[string]struct {
		args     []string
		keeps    bool
		snapshot bool
	}{
		// A slow sync would put writes off.
		"append-only file": {[]string{"--appendonly", "yes", "--appendfsync", "no"}, true, false},
		"snapshots":        {[]string{"--save", "3600 1000000"}, false, true},
		"nothing":          {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, client, limiter := survivor(t, c.args...)
			patiently := server.Client(t, limittest.Unhurried)
			used := func() int { return int(month.Max - left(t, onRedis(patiently), month.Limit(nil))) }
			s := spend(limiter)
			eventually(t, "some is spent", func() bool { return used() > 10 })
			before := 0
			if c.snapshot {
				before = used()
				ok(t, patiently.Save(t.Context()).Err())
			}
			time.Sleep(rand.N(200 * time.Millisecond)) // at any moment
			at := time.Now()
			server.Kill()
			s.done.Wait()
			server.Restart()
			charges, age := s.lost(t, client, at)
			t.Logf("%d of %d charges are lost, of the last %v", charges, len(s.acked), age.Round(time.Millisecond))
			switch {
			case len(s.acked) == 0:
				t.Error("nothing was spent")
			case c.keeps && charges > 0:
				t.Errorf("%d of %d charges are lost", charges, len(s.acked))
			case c.snapshot && len(s.acked)-charges < before:
				t.Errorf("%d of %d charges are lost, and %d were made before the snapshot", charges, len(s.acked), before)
			case !c.keeps && !c.snapshot && charges != len(s.acked):
				t.Errorf("%d of %d charges are lost, without anything that keeps them", charges, len(s.acked))
			}
		})
	}
}

// TestFailoverLoses makes a replica the master, whose master has died. It lacks what was on
// the way. If it had not heard of its master before, it lacks all of that time, unless the
// master was told to take no writes without a replica.
func TestFailoverLoses(t *testing.T) {
	t.Parallel()
	fullOnly(t)
	for _, c := range []struct {
		name     string
		args     []string
		deaf     time.Duration // how long the replica hears nothing before the master dies
		atLeast  time.Duration // what is lost
		most     time.Duration
		refusing bool // the master takes no more then
	}{
		{name: "healthy", most: time.Second}, // some milliseconds on a machine that is not busy
		{name: "out of touch", deaf: 1500 * time.Millisecond, atLeast: time.Second, most: time.Minute},
		{name: "min-replicas-to-write", args: []string{"--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"},
			deaf: 4500 * time.Millisecond, most: 3500 * time.Millisecond, refusing: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			again(t, 3, c.name, func() string {
				master, _, limiter := survivor(t, c.args...)
				host, _, _ := net.SplitHostPort(master.Addr)
				replica, client := linked(t, master)
				time.Sleep(100 * time.Millisecond) // a lag is known
				s := spend(limiter)
				time.Sleep(1500*time.Millisecond + rand.N(500*time.Millisecond)) // in which it spends
				deaf := time.Now()
				if c.refusing { // the connection stands, and nothing comes over it
					replica.Pause()
				} else if c.deaf > 0 {
					ok(t, client.ReplicaOf(t.Context(), host, "1").Err())
				}
				time.Sleep(c.deaf) // while it spends
				at := time.Now()
				master.Kill()
				if c.refusing { // what it has admitted alone began when nobody listened
					at = s.last(deaf)
				}
				replica.Resume()
				ok(t, client.ReplicaOf(t.Context(), "NO", "ONE").Err())
				charges, age := s.lost(t, client, at)
				t.Logf("%d of %d charges are lost, of the last %v", charges, len(s.acked), age.Round(100*time.Microsecond))
				if age < c.atLeast || age > c.most || len(s.acked) < 10 {
					return fmt.Sprintf("%d of %d charges are lost, of the last %v, want %v to %v", charges, len(s.acked), age, c.atLeast, c.most)
				}
				return ""
			})
		})
	}
}

// last returns when the last charge was made, or the time given if none was.
func (s *spender) last(otherwise time.Time) time.Time {
	s.done.Wait()
	if len(s.acked) == 0 {
		return otherwise
	}
	return s.acked[len(s.acked)-1]
}
