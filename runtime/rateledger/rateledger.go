// Package rateledger keeps what was used of rules with a ledger in Postgres, exactly once:
//
//	ledger, err := rateledger.Open(ctx, pool, store)
//	...
//	go ledger.Run(ctx) // in every process that charges
//
// Redis has the counts, and each has a version. A [Ledger] reads those that have changed, and writes
// them as they are: a later state of a count takes the place of an earlier one, however often and in
// whatever order they come. So no call waits for Postgres, several processes may write at once, and
// one that dies leaves nothing that another does not find. While Postgres is away counts wait in
// Redis, for 35 days.
//
// If Redis loses a count, the row of its epoch stays, since it was used all the same. Later charges
// begin another epoch. [Ledger.Restore] has the limits count it again.
package rateledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/accounts"
)

const (
	flushEvery = 5 * time.Second
	scanEvery  = time.Hour
	lastFlush  = 10 * time.Second // how long the last one may take
	writeRows  = 500              // keys that are read and written at a time

	// writtenFor is how long after a period its counts are still written. Keys may keep them for
	// longer, of which rows may be deleted.
	writtenFor = 36 * 24 * time.Hour
)

// A Ledger writes what is used to a [Sink], and reads it there. It is safe for concurrent use.
type Ledger struct {
	sink     Sink
	accounts *accounts.Accounts
	every    time.Duration
	logger   *slog.Logger
	now      func() time.Time

	mu      sync.Mutex                // held to flush
	scanned int64                     // what was over by then, in microseconds since 1970, is written
	written atomic.Pointer[time.Time] // when all that was charged before is
}

// An Option configures a [Ledger].
type Option func(*Ledger)

// WithInterval sets how long after a charge it is written, by default 5 seconds, with some jitter.
// It panics if d is below 10 ms.
func WithInterval(d time.Duration) Option {
	if d < 10*time.Millisecond {
		panic(fmt.Sprintf("rateledger: WithInterval(%v): write a number with its unit, such as 5*time.Second", d))
	}
	return func(l *Ledger) { l.every = d }
}

// WithLogger sets where errors of [Ledger.Run] are logged, by default [slog.Default].
func WithLogger(logger *slog.Logger) Option { return func(l *Ledger) { l.logger = logger } }

// Open returns the ledger of the rules of all limiters on a store, in tables of a pool's database,
// ledger, ledger_day and ledger_delta, which it creates where they are missing. It fails if they are of a newer
// version of this package, or were altered. The pool stays the caller's to close.
func Open(ctx context.Context, pool *pgxpool.Pool, store *runtime.RedisStore, opts ...Option) (*Ledger, error) {
	sink, err := NewPostgres(ctx, pool)
	if err != nil {
		return nil, err
	}
	return New(sink, store, opts...), nil
}

// New is [Open] for another sink.
func New(sink Sink, store *runtime.RedisStore, opts ...Option) *Ledger {
	l := &Ledger{sink: sink, accounts: bridge.AccountsOf(store).(*accounts.Accounts), every: flushEvery, logger: slog.Default(), now: time.Now}
	for _, opt := range opts {
		opt(l)
	}
	now := time.Now()
	l.written.Store(&now)
	return l
}

// Run writes what is charged until ctx ends, and then once more. It looks for what processes that
// have died owe when it starts and each hour, with SCAN. The error says why something was left, which
// the next process finds.
func (l *Ledger) Run(ctx context.Context) error {
	defer l.accounts.Open(l.every)()
	var scans sync.WaitGroup
	scans.Go(func() {
		for next := time.Duration(0); wait(ctx, next); {
			next = scanEvery
			if err := l.scan(ctx); err != nil && ctx.Err() == nil {
				l.logger.Warn("rateledger: keys are not listed, and are again within two minutes", "error", err)
				next = time.Minute
			}
		}
	})
	for failed := false; wait(ctx, l.every); {
		err := l.Flush(ctx)
		if err != nil && ctx.Err() == nil && !failed {
			l.logger.Warn("rateledger: counts are not written, and wait in redis", "error", err)
		}
		failed = err != nil
	}
	scans.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlush)
	defer cancel()
	return l.Flush(last)
}

// wait waits for about a time, and reports whether the context goes on.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d - d/5 + rand.N(2*d/5+1))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Flush writes what was charged since [Ledger.Run] began, or since the last Flush. What it does not
// write it does the next time.
func (l *Ledger) Flush(ctx context.Context) error {
	l.mu.Lock()
	began := time.Now()
	keys, more := l.accounts.Charged()
	scanned := l.scanned
	var failed error
	for len(keys) > 0 && failed == nil {
		n := min(len(keys), writeRows)
		left, err := l.export(ctx, keys[:n], scanned)
		if err != nil {
			failed = err
		}
		l.accounts.Again(left, false)
		keys = keys[n:]
	}
	l.accounts.Again(keys, more && failed != nil)
	l.mu.Unlock()
	if failed == nil && more {
		failed = l.scan(ctx)
		l.accounts.Again(nil, failed != nil)
	}
	for name, other := range l.accounts.Shared() {
		failed = errors.Join(failed, fmt.Errorf("rateledger: the keys of rule %q are also those of rule %q of another program, to which they are billed: "+
			"give both one name, or each a prefix of its own", name, other))
	}
	if failed == nil {
		l.written.Store(&began)
		l.accounts.Exported(began)
	}
	return failed
}

// scan writes the counts of all keys.
func (l *Ledger) scan(ctx context.Context) error {
	began := time.Now()
	var lost error
	err := l.accounts.Scan(ctx, func(keys []accounts.Key) error {
		read := time.Now()
		left, err := l.export(ctx, keys, 0)
		l.accounts.Again(left, false)
		lost = errors.Join(lost, err)
		if err == nil {
			wait(ctx, time.Since(read)/4) // so that others have their time, too
		}
		return err
	})
	if err = errors.Join(err, lost); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scanned = began.Add(-time.Hour).UnixMicro() // clocks differ
	return nil
}

// export writes the counts of keys, and those of periods that ended after a time. It returns the keys
// of which that failed.
func (l *Ledger) export(ctx context.Context, keys []accounts.Key, since int64) ([]accounts.Key, error) {
	counts, failed, err := l.accounts.Read(ctx, keys, max(since, l.now().Add(-writtenFor).UnixMicro()))
	rows := make([]Row, 0, len(counts))
	for i := range counts {
		rows = append(rows, rowOf(&counts[i]))
	}
	if len(rows) > 0 {
		if lost := l.sink.Write(ctx, rows); lost != nil {
			return keys, lost
		}
	}
	return failed, err
}

// Lag returns how long ago it was that nothing was left to write, to this process's knowledge. What
// was charged before is in the ledger; what was charged since is lost if Redis loses it now.
func (l *Ledger) Lag() time.Duration { return time.Since(*l.written.Load()) }
