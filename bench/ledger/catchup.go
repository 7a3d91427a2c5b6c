package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/runtime/rateledger"
	"github.com/rategen/rategen/runtime/rule"
)

// waiting is how many keys were charged while Postgres was away. A process remembers half as many.
const waiting = 200_000

// catchUp has keys charged that nobody writes, and returns how many a second a ledger writes then, by a
// SCAN of Redis.
func (w *world) catchUp(ctx context.Context) (rate float64, err error) {
	store, limiter, take := w.limiter(rule.LedgerOn)
	defer func() { err = errors.Join(err, limiter.Close(), store.Close()) }()
	failed := make(chan int)
	for i := range callers {
		go func() {
			n := 0
			for key := i; key < waiting; key += callers {
				if take(ctx, fmt.Sprint("customer-", key)) == load.Failed {
					n++
				}
			}
			failed <- n
		}()
	}
	for range callers {
		if n := <-failed; n > 0 {
			err = fmt.Errorf("%d calls failed", n)
		}
	}
	if err != nil {
		return 0, err
	}
	ledger, err := rateledger.Open(ctx, w.pool, store)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended, began := make(chan error, 1), time.Now()
	go func() { ended <- ledger.Run(ctx) }()
	for rows := 0; rows < waiting && err == nil; time.Sleep(20 * time.Millisecond) {
		err = w.pool.QueryRow(ctx, `SELECT count(*) FROM ledger`).Scan(&rows)
	}
	took := time.Since(began)
	cancel()
	return waiting / took.Seconds(), errors.Join(err, <-ended)
}
