package outages

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// childsRedis names the variable with the address of the Redis of a child: a process that a
// test starts and kills.
const childsRedis = "RATEGEN_TEST_CHILDS_REDIS"

// child starts a process that runs a test of this binary, and returns what that writes and
// how to kill it.
func child(t *testing.T, test string, server *redistest.Server) (out *bufio.Reader, kill func()) {
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), childsRedis+"="+server.Addr)
	pipe, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	kill = func() { _ = cmd.Process.Kill() }
	t.Cleanup(func() { kill(); _ = cmd.Wait() })
	return bufio.NewReader(pipe), kill
}

// childsLimiter returns the limiter of a child. In any other process it skips the test.
func childsLimiter(t *testing.T) *runtime.Limiter {
	addr := os.Getenv(childsRedis)
	if addr == "" {
		t.Skip("is part of a test that starts it as a process of its own")
	}
	return onRedis(redis.NewClient(&redis.Options{Addr: addr}))
}

// reserve is how long a process may stand still on a busy machine, and go on to hold what it has.
const reserve = 5 * time.Second

// crashRule is a month's budget, of which a process that dies takes nothing for long.
func crashRule(name string, max int64) *runtime.Rule {
	return &runtime.Rule{Name: name, Algorithm: runtime.FixedWindow, Period: rule.Month, Max: max, Reserve: reserve}
}

// TestProcessThatDies is the process of TestCrash. It is killed while its calls run.
func TestProcessThatDies(t *testing.T) {
	limiter := childsLimiter(t)
	for range 20 {
		taken(t, limiter, crashRule("crash", 100).Limit(key("k")).WithCost(3))
	}
	_, _ = os.Stdout.WriteString("reserved\n")
	select {}
}

// A process that is killed gives back all that its calls had reserved, within Reserve and a
// second. Until then it keeps it, however long they run.
func TestCrash(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limiter := onRedis(server.Client(t))
	rule := crashRule("crash", 100)
	limit := rule.Limit(key("k"))
	out, kill := child(t, "TestProcessThatDies", server)
	for line := ""; line != "reserved\n"; {
		var err error
		line, err = out.ReadString('\n')
		ok(t, err)
	}
	throughout(rule.Reserve+rule.Reserve/2, func() { wantLeft(t, limiter, limit, 40) })
	kill()
	clock := server.Client(t)
	killed := clock.Time(t.Context()).Val()
	eventually(t, "all is left", func() bool {
		passed := clock.Time(t.Context()).Val().Sub(killed) // before it is looked at
		n := left(t, limiter, limit)
		if n < 100 && passed > rule.Reserve+time.Second {
			t.Fatalf("%d of 100 are left %v after the process was killed", n, passed)
		}
		return n == 100
	})
	taken(t, limiter, limit.WithCost(100))
}

// streamRules are budgets of a month, of the second of which three times as much is used.
func streamRules() (a, b *runtime.Rule) {
	return crashRule("user", 1_000_000), crashRule("tenant", 10_000_000)
}

// TestStreamThatDies is the process of TestMeterCrash. It is killed while its streams run.
func TestStreamThatDies(t *testing.T) {
	limiter := childsLimiter(t)
	a, b := streamRules()
	m := metered(t, limiter, a.Limit(key("k")), b.Limit(key("k")))
	for m.Charge(1, 3) == nil {
		_, _ = os.Stdout.Write([]byte{'.'})
		time.Sleep(time.Millisecond) // so that others get on
	}
}

// A process that is killed while it streams leaves what its streams have used, but for about
// a second, and nothing of what they held in advance, within Reserve and a second. Until then
// nothing that is used comes back, however long it runs.
func TestMeterCrash(t *testing.T) {
	t.Parallel()
	fullOnly(t)
	server := redistest.Start(t)
	limiter := onRedis(server.Client(t))
	a, b := streamRules()
	charged := func() (int64, int64) {
		return a.Max - left(t, limiter, a.Limit(key("k"))), b.Max - left(t, limiter, b.Limit(key("k")))
	}
	out, kill := child(t, "TestStreamThatDies", server)
	var used atomic.Int64
	var read sync.WaitGroup
	read.Go(func() {
		for {
			c, err := out.ReadByte()
			if err != nil {
				return
			}
			if c == '.' {
				used.Add(1)
			}
		}
	})
	eventually(t, "the stream begins", func() bool { return used.Load() > 100 })
	var long int64 // what is used two seconds before the end
	start := time.Now()
	throughout(3*a.Reserve, func() {
		n := used.Load()
		if gotA, gotB := charged(); gotA < n || gotB < 3*n {
			t.Fatalf("%d and %d are charged while the stream has used %d", gotA, gotB, n)
		}
		if time.Since(start) < 3*a.Reserve-2*time.Second {
			long = n
		}
	})
	// A piece may be used up and not replaced yet, so that it has to hold some in advance.
	eventually(t, "it holds some in advance", func() bool { got, _ := charged(); return got > used.Load()+50 })
	heldA, heldB := charged()
	kill()
	read.Wait()
	time.Sleep(a.Reserve + time.Second) // within which it comes back, by the clock of Redis
	n := used.Load()
	gotA, gotB := charged()
	t.Logf("%d and %d were charged when it was killed; of %d used, %d long before, %d and %d stay charged", heldA, heldB, n, long, gotA, gotB)
	if gotA < long || gotA > n+1 || gotB < 3*long || gotB > 3*n+3 {
		t.Errorf("%d and %d stay charged of %d used, and %d long before", gotA, gotB, n, long)
	}
	throughout(a.Reserve, func() {
		if a, b := charged(); a != gotA || b != gotB {
			t.Fatalf("it goes on to come back: %d, then %d, and %d, then %d", gotA, a, gotB, b)
		}
	})
}

// linked starts a replica of a master, and returns it and its client when it has all of the master's data.
func linked(t *testing.T, master *redistest.Server) (*redistest.Server, *redis.Client) {
	t.Helper()
	replica := redistest.Start(t)
	replica.Follow(t, master)
	client := replica.Client(t, limittest.Unhurried)
	eventually(t, "the replica is linked", func() bool {
		return strings.Contains(client.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	return replica, client
}

// A replica takes its master's place that lacks the last of what that had: a charge of a call
// that runs, and a settlement. Calls that run are charged there once, and settled once; and
// what nobody renews there, since its call or its process is over, lapses.
func TestFailoverOfReservations(t *testing.T) {
	t.Parallel()
	fullOnly(t)
	ctx := t.Context()
	master := redistest.Start(t)
	host, _, _ := net.SplitHostPort(master.Addr)
	replica, promoted := linked(t, master)
	var current atomic.Pointer[string]
	current.Store(&master.Addr)
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, *current.Load())
	}}))
	t.Cleanup(func() { _ = client.Close() })
	limiter, dead := onRedis(client), onRedis(client)

	r := &runtime.Rule{Name: "budget", Algorithm: runtime.FixedWindow, Window: 24 * time.Hour, Max: 100, Reserve: reserve}
	limit := r.Limit(key("k"))
	known := taken(t, limiter, limit.WithCost(10))
	over := taken(t, limiter, limit.WithCost(5))
	taken(t, dead, limit.WithCost(20))
	name := bridge.LimiterOf(limiter).RedisKey(limit)
	eventually(t, "the replica has all of it", func() bool { return promoted.ZCard(ctx, name).Val() == 6+3 })
	ok(t, promoted.ReplicaOf(ctx, host, "1").Err()) // it hears no more
	unknown := taken(t, limiter, limit.WithCost(7))
	settled(t, limiter, over, 2)
	wantLeft(t, limiter, limit, 100-10-2-20-7)
	ok(t, dead.Close())

	master.Kill()
	ok(t, promoted.ReplicaOf(ctx, "no", "one").Err())
	current.Store(&replica.Addr)
	eventually(t, "only calls that run have something", func() bool {
		d, err := limiter.Peek(ctx, limit)
		return err == nil && d.Source == rule.SourceStore && d.Remaining == 100-10-7
	})
	throughout(r.Reserve+r.Reserve/4, func() { wantLeft(t, limiter, limit, 100-10-7) })
	settled(t, limiter, known, 4)
	settled(t, limiter, unknown, 9)
	throughout(r.Reserve+r.Reserve/4, func() { wantLeft(t, limiter, limit, 100-4-9) })
	if _, err := limiter.Take(ctx, limit.WithCost(100-4-9)); err != nil {
		t.Error(err)
	}
	if n, ttl := promoted.ZCard(ctx, name).Val(), promoted.PTTL(ctx, name).Val(); n != 6+1 || ttl <= 0 || ttl > r.Window+time.Second {
		t.Errorf("%d members, of which one call has one, expire in %v", n, ttl)
	}
}
