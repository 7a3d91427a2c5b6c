package rateclient_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/peerstate"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// TestPeerScript has Redis, and a cluster, note what a peer says, and a process by itself: they know
// the same afterwards, whatever the numbers.
func TestPeerScript(t *testing.T) {
	t.Parallel()
	clients := map[string]redis.UniversalClient{"single": redistest.Start(t).Client(t), "cluster": redistest.StartCluster(t).Client(t)}
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			shared := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second)))
			alone := runtime.New(runtime.NewMemoryStore())
			r := &runtime.Rule{Name: "peer", Window: time.Minute, Max: 10, Hold: true}
			for key := range int64(30) {
				limit := r.Limit(new(runtime.Key).AddInt(key))
				highest := []int64{3, 100, 1e15 - 1}[rand.N(3)]
				of := &peerstate.Limit{First: 1 + rand.N(highest), Life: time.Hour}
				if rand.N(2) == 0 {
					of.Window = time.Hour
				}
				close := time.Second // and a little longer is no news
				for range 30 {
					said := peerstate.Said{}
					if rand.N(3) > 0 {
						said.Max = 1 + rand.N(highest)
					}
					if rand.N(4) == 0 {
						said.Evenly = rand.N(2 * rule.MaxWindow)
						close = max(close, time.Second+said.Evenly/64)
					}
					begin := time.Now()
					want, got := bridge.LimiterOf(alone).Peer(t.Context(), limit, of, said), bridge.LimiterOf(shared).Peer(t.Context(), limit, of, said)
					close += time.Since(begin) // that one of them heard it later
					if apart := want.Paced.Sub(got.Paced).Abs(); got.Max != want.Max || want.Paced.After(time.Now()) && apart > close {
						t.Fatalf("%+v, %+v said: %+v in Redis, %+v in this process", *of, said, got, want)
					}
				}
				ttl := client.PTTL(t.Context(), fmt.Sprintf("rate_limit:peer:%d%%block%%peer", key)).Val()
				if ttl <= 0 || ttl > 2*rule.MaxWindow+of.Life {
					t.Fatalf("key %d lives for %v", key, ttl)
				}
			}
		})
	}
}

// TestPeerStateEnds wants what a peer has said to be forgotten in time, and by all.
func TestPeerStateEnds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	open := func() *runtime.Limiter {
		return runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second)))
	}
	rule := &runtime.Rule{Name: "peer", Window: time.Minute, Max: 10, Hold: true}
	most := func(l *runtime.Limiter, of *peerstate.Limit, said peerstate.Said) int64 {
		return bridge.LimiterOf(l).Peer(t.Context(), rule.Limit(nil), of, said).Max
	}
	one, other := open(), open()
	short, long := &peerstate.Limit{First: 10, Life: 50 * time.Millisecond}, &peerstate.Limit{First: 10, Life: time.Hour}
	if got := most(one, short, peerstate.Said{Max: 4}); got != 4 {
		t.Errorf("max %d", got)
	}
	time.Sleep(60 * time.Millisecond)
	for name, l := range map[string]*runtime.Limiter{"who knew": one, "another": other, "a new one": open()} {
		if got := most(l, short, peerstate.Said{}); got != 0 {
			t.Errorf("%s goes by %d after its life", name, got)
		}
	}
	if got := most(one, long, peerstate.Said{Max: 3}); got != 3 {
		t.Errorf("max %d", got)
	}
	limittest.OK(t, client.FlushAll(t.Context()).Err())
	time.Sleep(1100 * time.Millisecond)
	for name, l := range map[string]*runtime.Limiter{"who knew": one, "another": other} {
		if got := most(l, long, peerstate.Said{}); got != 0 {
			t.Errorf("%s goes by %d that Redis has forgotten", name, got)
		}
	}
}

// TestPeerStateWithoutRedis wants a process to go by what it knows while Redis does not answer,
// and wait for it no longer than for the timeout, once a second.
func TestPeerStateWithoutRedis(t *testing.T) {
	t.Parallel()
	for _, tuned := range []bool{false, true} {
		t.Run(fmt.Sprint("tuned ", tuned), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			client := server.Client(t, func(o *redis.Options) {
				o.ReadTimeout = time.Minute // by itself it would wait for so long
				if tuned {
					runtime.TuneRedis(o)
				}
			})
			var asked atomic.Int64
			client.AddHook(redistest.Hook(func(cmds []redis.Cmder, send func() error) error {
				if !redistest.Connects(cmds...) {
					asked.Add(1)
				}
				return send()
			}))
			const timeout = 50 * time.Millisecond
			store := runtime.NewRedisStore(client, runtime.WithTimeout(timeout))
			l := runtime.New(store)
			rule := &runtime.Rule{Name: "peer", Window: time.Minute, Max: 10, Hold: true}
			of := &peerstate.Limit{First: 10, Life: time.Hour}
			bridge.LimiterOf(l).Peer(t.Context(), rule.Limit(nil), of, peerstate.Said{Max: 7})
			server.Pause()
			asked.Store(0)
			begin := time.Now()
			var slowest time.Duration
			for time.Since(begin) < 1500*time.Millisecond {
				called := time.Now()
				if got := bridge.LimiterOf(l).Peer(t.Context(), rule.Limit(nil), of, peerstate.Said{}).Max; got != 7 {
					t.Fatalf("max %d while Redis is away", got)
				}
				slowest = max(slowest, time.Since(called))
				time.Sleep(time.Millisecond)
			}
			if n := asked.Load(); slowest > timeout+20*time.Second || n == 0 || n > 2+int64(time.Since(begin)/time.Second) { // a busy machine stands still at times
				t.Errorf("%d calls have asked Redis, the longest took %v", n, slowest)
			}
			if got := bridge.LimiterOf(l).Peer(t.Context(), rule.Limit(nil), of, peerstate.Said{Max: 5}).Max; got != 5 {
				t.Errorf("max %d, the peer has just said 5", got)
			}
			server.Resume()
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
			closed := bridge.LimiterOf(l).Peer(t.Context(), rule.Limit(nil), of, peerstate.Said{Max: 4})
			if closed.Max != 4 {
				t.Errorf("max %d after the end", closed.Max)
			}
		})
	}
}

// TestReleasedPeer wants a release, and a reset, of a key to end what the peer has said, on Redis
// and in memory, for all who share the store.
func TestReleasedPeer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, open := range map[string]func() runtime.Store{
		"redis": func() runtime.Store {
			return runtime.NewRedisStore(server.Client(t), runtime.WithTimeout(5*time.Second))
		},
		"memory": func() runtime.Store { return runtime.NewMemoryStore() },
	} {
		store := open()
		one, other := runtime.New(store), runtime.New(store)
		if name == "redis" {
			other = runtime.New(open())
		}
		rule := &runtime.Rule{Name: "peer", Window: time.Minute, Max: 10, Hold: true}
		of := &peerstate.Limit{First: 10, Life: time.Hour}
		ways := map[string]func(runtime.Limit) error{
			"release": func(limit runtime.Limit) error { return other.Release(t.Context(), limit) },
			"reset":   func(limit runtime.Limit) error { return other.Reset(t.Context(), limit) },
		}
		for what, end := range ways {
			limit := rule.Limit(limittest.Key(what))
			bridge.LimiterOf(one).Peer(t.Context(), limit, of, peerstate.Said{Max: 3, Evenly: 24 * time.Hour})
			if err := end(limit); err != nil {
				t.Fatal(name, what, err)
			}
		}
		if name == "redis" {
			time.Sleep(1100 * time.Millisecond) // what a process has read holds for a second
		}
		for what := range ways {
			for _, l := range []*runtime.Limiter{one, other} {
				if s := bridge.LimiterOf(l).Peer(t.Context(), rule.Limit(limittest.Key(what)), of, peerstate.Said{}); s.Max != 0 || s.Paced.After(time.Now()) {
					t.Errorf("%s, after a %s: %+v", name, what, s)
				}
			}
		}
	}
}
