package rateledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/internal/testkit/seed"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// rules returns one for each way of counting that a ledger reads, of periods that do not end in a test.
func rules() []*runtime.Rule {
	plain := runtime.Rule{Algorithm: runtime.FixedWindow, Period: rule.Year, Zone: "Europe/Berlin", Max: rule.MaxAmount, Ledger: rule.LedgerOn}
	reserves, carries, hashes, shadow := plain, plain, plain, plain
	plain.Name, reserves.Name, carries.Name, hashes.Name, shadow.Name = "plain", "reserves", "carries", "hashes", "shadow"
	reserves.Reserve, carries.Debt, hashes.Ledger, shadow.Mode = 500*time.Millisecond, rule.DebtCarry, rule.LedgerHash, runtime.ModeShadow
	return []*runtime.Rule{&plain, &reserves, &carries, &hashes, &shadow}
}

// A process is a program that charges, with a ledger.
type process struct {
	limiter *runtime.Limiter
	store   *runtime.RedisStore
	ledger  *Ledger
	end     func() error
}

// begin begins a process on a Redis. Its ledger runs until end, which returns what Run does.
func begin(t *testing.T, client redis.UniversalClient, sink Sink, all []*runtime.Rule, options ...runtime.RedisOption) *process {
	p := open(client, sink, all, options...)
	t.Cleanup(func() { _ = p.end() })
	return p
}

func open(client redis.UniversalClient, sink Sink, all []*runtime.Rule, options ...runtime.RedisOption) *process {
	p := &process{store: runtime.NewRedisStore(client, append([]runtime.RedisOption{runtime.WithTimeout(5 * time.Second)}, options...)...)}
	p.limiter = runtime.New(p.store, runtime.WithNamespace("test"), runtime.WithLogger(slog.New(slog.DiscardHandler)), runtime.WithoutReports(), runtime.WithFailurePolicy(runtime.FailClosed))
	p.limiter.Register(all...)
	p.ledger = New(sink, p.store, WithInterval(50*time.Millisecond), WithLogger(slog.New(slog.DiscardHandler)))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.ledger.Run(ctx) }()
	p.end = sync.OnceValue(func() error {
		cancel()
		return errors.Join(<-ended, p.limiter.Close(), p.store.Close())
	})
	return p
}

// counts are what was charged for sure, by rule and key.
type counts struct {
	sync.Mutex
	used map[string]int64
}

func (c *counts) add(r *runtime.Rule, key string, n int64) {
	c.Lock()
	defer c.Unlock()
	c.used[r.Name+" "+key] += n
}

// use has a call charge a key and settle at another cost, and counts what it used.
func (p *process) use(t *testing.T, c *counts, r *runtime.Rule, key string, cost, settled int64) {
	ctx := context.Background()
	d, err := p.limiter.Take(ctx, r.Limit(runtime.NewKey().AddString(key)).WithCost(cost))
	if err != nil {
		t.Error(err)
		return
	}
	if err := p.limiter.Settle(ctx, d, settled); err != nil {
		t.Error(err)
	}
	c.add(r, key, settled)
}

// compare wants the ledger to have what was used.
func (c *counts) compare(t *testing.T, l *Ledger) {
	t.Helper()
	for _, r := range rules() {
		for i := range 50 {
			key := fmt.Sprint("k", i)
			totals, err := l.Totals(t.Context(), r.Name, key, time.Time{}, time.Time{})
			ok(t, err)
			used := int64(0)
			for _, p := range totals {
				used += p.Used
			}
			if want := c.used[r.Name+" "+key]; used != want {
				t.Errorf("%s %s: %d in the ledger, want %d", r.Name, key, used, want)
			}
			days, err := l.Days(t.Context(), r.Name, key, time.Time{}, time.Time{})
			ok(t, err)
			for _, d := range days {
				used -= d.Used
			}
			if used != 0 {
				t.Errorf("%s %s: %d more than on its days %v", r.Name, key, used, days)
			}
		}
	}
}

// A mortal sink is killed now and then, before or after it has written.
type mortal struct {
	Sink
	mu     sync.Mutex
	random *rand.Rand
	deaths int
}

var errKilled = errors.New("killed")

func (m *mortal) Write(ctx context.Context, rows []Row) error {
	m.mu.Lock()
	before, after := m.random.IntN(4) == 0, m.random.IntN(4) == 0
	if before || after {
		m.deaths++
	}
	m.mu.Unlock()
	if before {
		return errKilled
	}
	if err := m.Sink.Write(ctx, rows); err != nil || !after {
		return err
	}
	return errKilled
}

// TestExactlyOnce has processes charge, settle and die while their writers are killed, and wants the
// ledger to have each unit once.
func TestExactlyOnce(t *testing.T) {
	random := seed.New(t)
	pool, client := database(t), redistest.Start(t).Client(t)
	sink, err := NewPostgres(t.Context(), pool)
	ok(t, err)
	dying := &mortal{Sink: sink, random: rand.New(rand.NewPCG(random.Uint64(), 1))}
	c, all := counts{used: map[string]int64{}}, rules()
	for range 4 {
		var group sync.WaitGroup
		for range 4 {
			calls := rand.New(rand.NewPCG(random.Uint64(), 2))
			p := begin(t, client, dying, all)
			group.Go(func() {
				for range 300 {
					cost := 1 + calls.Int64N(20)
					p.use(t, &c, all[calls.IntN(len(all))], fmt.Sprint("k", calls.IntN(50)), cost, calls.Int64N(cost+10))
				}
				if calls.IntN(2) == 0 {
					p.ledger.accounts.Charged() // it dies, and with it what it knows
				}
				_ = p.end()
			})
		}
		group.Wait()
	}
	last := begin(t, client, sink, all)
	ok(t, last.ledger.scan(t.Context()))
	ok(t, last.end())
	c.compare(t, last.ledger)
	if dying.deaths == 0 {
		t.Error("nobody was killed")
	}
}
