package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// A history is what some clients did with one key, and were told.
type history struct {
	mu    sync.Mutex
	begun time.Time
	ops   []porcupine.Operation
}

// do does an operation of a client, and writes it down.
func (h *history) do(client int, in op, do func() (answer, error)) (answer, bool) {
	from := time.Since(h.begun).Nanoseconds()
	out, err := do()
	to := time.Since(h.begun).Nanoseconds()
	if err != nil {
		out, to = answer{unknown: true}, time.Hour.Nanoseconds() // it may be done yet
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: from, Return: to})
	return out, err == nil
}

// A holding is a take that was admitted, and its charge.
type holding struct {
	id     int
	charge rawstore.Charge
}

const (
	clients = 4
	each    = 30 // operations of a client
	most    = 12
)

var rules = map[string]runtime.Rule{
	"log":     {},
	"packed":  {Storage: runtime.StoragePacked},
	"counter": {Algorithm: runtime.SlidingCounter},
	"window":  {Algorithm: runtime.FixedWindow},
	"permits": {Algorithm: runtime.Concurrency},
}

// An asker is a store that is asked directly.
type asker interface {
	Take(context.Context, []rawstore.Call) error
	Peek(context.Context, []rawstore.Call) error
	Settle(context.Context, []rawstore.Charge) error
	Reset(context.Context, []rawstore.Charge) error
}

// record has clients use one key at random, and now and then reset it.
func record(rule *runtime.Rule, stores []asker, seed uint64, resets bool) *history {
	h := &history{begun: time.Now()}
	ctx, key := context.Background(), []byte(fmt.Sprint("linear:", rule.Name, seed))
	var wait sync.WaitGroup
	for client, store := range stores {
		r := rand.New(rand.NewPCG(seed, uint64(client)))
		wait.Go(func() {
			var held []holding
			for n := range each {
				charge := rawstore.Charge{Rule: rule, Key: key, Max: most, Cost: 1 + r.Int64N(4)}
				ask := func(ask func(context.Context, []rawstore.Call) error) (answer, error) {
					calls := []rawstore.Call{{Charges: []rawstore.Charge{charge}}}
					if err := ask(ctx, calls); err != nil {
						return answer{}, err
					}
					charge = calls[0].Charges[0]
					return answer{allowed: charge.Allowed, left: charge.Remaining}, calls[0].Err
				}
				in := op{id: client*each + n, cost: charge.Cost, max: most}
				switch choice := r.IntN(10); {
				case choice == 0:
					in.kind = peek
					h.do(client, in, func() (answer, error) { return ask(store.Peek) })
				case choice == 1 && resets && r.IntN(4) == 0:
					in.kind = reset
					h.do(client, in, func() (answer, error) { return answer{}, store.Reset(ctx, []rawstore.Charge{charge}) })
				case choice > 5 && len(held) > 0:
					i := r.IntN(len(held))
					old := held[i].charge
					in.id = held[i].id
					held = slices.Delete(held, i, i+1)
					in.kind = settle
					if in.cost = r.Int64N(old.Cost); rule.Algorithm == runtime.Concurrency {
						in.cost = 0
					}
					old.Settled = in.cost
					h.do(client, in, func() (answer, error) { return answer{}, store.Settle(ctx, []rawstore.Charge{old}) })
				default:
					if out, ok := h.do(client, in, func() (answer, error) { return ask(store.Take) }); ok && out.allowed {
						held = append(held, holding{in.id, charge})
					}
				}
			}
		})
	}
	wait.Wait()
	return h
}

// judge fails a test unless porcupine's answer is the wanted one.
func judge(t *testing.T, h *history, want porcupine.CheckResult) {
	t.Helper()
	got, info := porcupine.CheckOperationsVerbose(model.ToModel(), h.ops, time.Minute)
	if got == want {
		return
	}
	path := t.ArtifactDir() + "/history.html"
	if err := porcupine.VisualizePath(model.ToModel(), info, path); err != nil {
		path = err.Error()
	}
	t.Errorf("porcupine says %s of %d operations, want %s: %s", got, len(h.ops), want, path)
}

// Operations of several processes on one key happen one after the other, each at one
// moment, also where replies are lost.
func TestLinear(t *testing.T) {
	server := redistest.Start(t)
	for name, rule := range rules {
		rule.Name, rule.Window = name, time.Hour
		for _, faults := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " replies lost ", faults), func(t *testing.T) {
				for range 5 {
					seed := rand.Uint64()
					proxy := faultproxy.Start(t, server.Addr)
					var stores []asker
					for range clients {
						client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: proxy.Addr}))
						defer client.Close()
						stores = append(stores, rawstore.On(runtime.NewRedisStore(client, runtime.WithDenialMemory(0), runtime.WithTimeout(5*time.Second))))
					}
					if faults {
						stop := make(chan struct{})
						var done sync.WaitGroup
						done.Go(func() { lose(proxy, stop) })
						defer done.Wait()
						defer close(stop)
					}
					// A client that has lost the reply to a reset makes it again. And a
					// settlement of what was reset may take from what has come since in
					// the same bucket, see Store.Settle.
					h := record(&rule, stores, seed, !faults && rule.Algorithm != runtime.SlidingCounter)
					t.Logf("seed %d: %d operations", seed, len(h.ops))
					judge(t, h, porcupine.Ok)
				}
			})
		}
	}
}

// lose has a proxy lose replies now and then.
func lose(proxy *faultproxy.Proxy, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond):
			proxy.CutReplies()
			time.Sleep(time.Millisecond)
			proxy.Pass()
		}
	}
}

// A limiter that reads its count by one command and writes it by another one is not
// linear, and porcupine says so.
func TestControl(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	rule := runtime.Rule{Name: "control", Window: time.Hour}
	for range 20 {
		h := record(&rule, slices.Repeat([]asker{&twoCommands{client: client}}, clients), rand.Uint64(), true)
		if porcupine.CheckOperations(model.ToModel(), h.ops) {
			continue
		}
		return
	}
	t.Error("20 histories of a limiter that is not linear are")
}

// twoCommands is such a limiter.
type twoCommands struct {
	client *redis.Client
}

func (s *twoCommands) Take(ctx context.Context, calls []rawstore.Call) error {
	c := &calls[0].Charges[0]
	used, _ := s.client.Get(ctx, string(c.Key)).Int64()
	c.Remaining = c.Max - used
	if c.Allowed = c.Cost <= c.Remaining; c.Allowed {
		c.Remaining, c.At = c.Remaining-c.Cost, time.Now().UnixNano()
		return s.client.Set(ctx, string(c.Key), used+c.Cost, time.Hour).Err()
	}
	return nil
}

func (s *twoCommands) Peek(ctx context.Context, calls []rawstore.Call) error {
	c := &calls[0].Charges[0]
	used, err := s.client.Get(ctx, string(c.Key)).Int64()
	if c.Remaining = c.Max - used; err == redis.Nil {
		err = nil
	}
	c.Allowed = c.Cost <= c.Remaining
	return err
}

func (s *twoCommands) Settle(ctx context.Context, charges []rawstore.Charge) error {
	c := &charges[0]
	return s.client.DecrBy(ctx, string(c.Key), c.Cost-c.Settled).Err()
}

func (s *twoCommands) Reset(ctx context.Context, charges []rawstore.Charge) error {
	return s.client.Del(ctx, string(charges[0].Key)).Err()
}
