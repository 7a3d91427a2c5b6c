package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/runtime/rateledger"
	"github.com/rategen/rategen/runtime/rule"
)

// A way is one way to have what calls use in Postgres.
type way struct {
	name  string
	total string // the query of how much that is
	rows  string // and of how many rows were written
	// begin returns how a call is made, and what ends the way when all is written.
	begin func(ctx context.Context, w *world) (take load.Take, end func() error, err error)
}

const (
	stream   = "bench:used"
	makeUsed = `CREATE TABLE used (id text PRIMARY KEY, key text NOT NULL, amount bigint NOT NULL, at timestamptz NOT NULL DEFAULT now())`
	sumUsed  = `SELECT coalesce(sum(amount), 0)::bigint FROM used`
	allUsed  = `SELECT count(*) FROM used`
)

var ways = []way{
	{"none: the limit alone", "", "", unwritten(rule.LedgerOff)},
	{"`ledger=on`, which nobody writes", "", "", unwritten(rule.LedgerOn)},
	{"`ledger=on`", `SELECT coalesce(sum(total), 0)::bigint FROM ledger`, `SELECT last_value FROM ledger_change`, byLedger},
	{"XADD for each call, and a consumer", sumUsed, allUsed, byStream},
	{"INSERT for each call", sumUsed, allUsed, func(ctx context.Context, w *world) (load.Take, func() error, error) {
		store, limiter, take := w.limiter(rule.LedgerOff)
		_, err := w.pool.Exec(ctx, makeUsed)
		return func(ctx context.Context, key string) load.Answer {
			if take(ctx, key) == load.Failed {
				return load.Failed
			}
			if _, err := w.pool.Exec(ctx, `INSERT INTO used (id, key, amount) VALUES (gen_random_uuid(), $1, 1)`, key); err != nil {
				return load.Failed
			}
			return load.Admitted
		}, func() error { return errors.Join(limiter.Close(), store.Close()) }, err
	}},
}

func unwritten(ledger rule.Ledger) func(context.Context, *world) (load.Take, func() error, error) {
	return func(_ context.Context, w *world) (load.Take, func() error, error) {
		store, limiter, take := w.limiter(ledger)
		return take, func() error { return errors.Join(limiter.Close(), store.Close()) }, nil
	}
}

func byLedger(ctx context.Context, w *world) (load.Take, func() error, error) {
	store, limiter, take := w.limiter(rule.LedgerOn)
	ledger, err := rateledger.Open(ctx, w.pool, store)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- ledger.Run(ctx) }()
	return take, func() error {
		cancel()
		return errors.Join(<-ran, limiter.Close(), store.Close())
	}, nil
}

// byStream has a call add an event, and a consumer insert each once, by its id, before it acknowledges it.
func byStream(ctx context.Context, w *world) (load.Take, func() error, error) {
	store, limiter, take := w.limiter(rule.LedgerOff)
	_, err := w.pool.Exec(ctx, makeUsed)
	if err == nil {
		err = w.client.XGroupCreateMkStream(ctx, stream, "group", "0").Err()
	}
	ended, ran := make(chan struct{}), make(chan error, 1)
	go func() { ran <- consume(ctx, w, ended) }()
	return func(ctx context.Context, key string) load.Answer {
			if take(ctx, key) == load.Failed {
				return load.Failed
			}
			if err := w.client.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []any{"key", key, "amount", "1"}}).Err(); err != nil {
				return load.Failed
			}
			return load.Admitted
		}, func() error {
			close(ended)
			return errors.Join(<-ran, limiter.Close(), store.Close())
		}, err
}

// consume inserts events until none is left after the end.
func consume(ctx context.Context, w *world, ended <-chan struct{}) error {
	for last := false; ; {
		found, err := w.client.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "group", Consumer: "one", Streams: []string{stream, ">"}, Count: 1000, Block: 50 * time.Millisecond}).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if len(found) == 0 {
			if last {
				return nil
			}
			select {
			case <-ended:
				last = true
			default:
			}
			continue
		}
		var ids, keys []string
		for _, m := range found[0].Messages {
			ids, keys = append(ids, m.ID), append(keys, m.Values["key"].(string))
		}
		if _, err := w.pool.Exec(ctx, `INSERT INTO used (id, key, amount) SELECT *, 1 FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING`, ids, keys); err != nil {
			return err
		}
		if err := errors.Join(w.client.XAck(ctx, stream, "group", ids...).Err(), w.client.XDel(ctx, stream, ids...).Err()); err != nil {
			return err
		}
	}
}
