package rateledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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
func (c *counts) compare(t *testing.T, p *process) {
	t.Helper()
	for _, r := range rules() {
		for i := range 50 {
			key := fmt.Sprint("k", i)
			used := p.billed(t, r, key)
			if want := c.used[r.Name+" "+key]; used != want {
				t.Errorf("%s %s: %d in the ledger, want %d", r.Name, key, used, want)
			}
			days, err := p.ledger.Days(t.Context(), r.Name, key, time.Time{}, time.Time{})
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

// billed returns what the ledger has of a key.
func (p *process) billed(t *testing.T, r *runtime.Rule, key string) (used int64) {
	t.Helper()
	totals, err := p.ledger.Totals(t.Context(), r.Name, key, time.Time{}, time.Time{})
	ok(t, err)
	for _, p := range totals {
		used += p.Used
	}
	return used
}

// counted returns what Redis counts of a key.
func (p *process) counted(t *testing.T, r *runtime.Rule, key string) int64 {
	t.Helper()
	usage, err := p.limiter.Usage(t.Context(), r.Limit(runtime.NewKey().AddString(key)))
	ok(t, err)
	return rule.MaxAmount - usage[0].Remaining
}
