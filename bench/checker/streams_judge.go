package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/judge"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/runtime"
)

// unsure is for how long before its end a process that was killed may have used what it had
// not settled: pieces last a second, see [runtime.Meter], and a busy machine is late.
const unsure = 2 * time.Second

// A budget is a limit of streams when all is over.
type budget struct {
	max     int64
	paid    int64 // units that streams have used
	sure    int64 // those that a process which was killed had settled before, or that lived
	charged int64 // what Redis has counted when nothing is reserved any more
	rest    int64 // what a patient caller could use then
}

// faults says how a budget is not what it should be. What is charged and was not used may be
// messages that a process had paid when it was killed, and not written down.
func (b *budget) faults(killed bool) (over, spurious int) {
	unwritten := int64(0)
	if killed {
		unwritten = b.max / 200
	}
	if b.charged < b.sure || b.charged+b.rest > b.max {
		over++
	}
	if b.charged > b.paid+unwritten || b.charged+b.rest < b.max {
		spurious++
	}
	return over, spurious
}

// judgeStreams compares what streams have used with what Redis has counted, and has a patient
// caller use the rest.
func judgeStreams(ctx context.Context, redis *server.Server, limits []limit, files []string) (*judge.Result, error) {
	total := new(judge.Result)
	budgets, all := make([]budget, len(limits)), budget{max: tenant.Max}
	killed, last := 0, int64(0)
	for _, file := range files {
		records, err := judge.Read[judge.SharedRecord](file)
		if err != nil {
			return nil, err
		}
		before, n := int64(0), len(records)
		if n > 0 && records[n-1].Limit == lived {
			records, before = records[:n-1], records[n-1].End+1
		} else {
			killed++
			if n > 0 {
				before = records[n-1].End - unsure.Microseconds()
				last = max(last, records[n-1].End)
			}
		}
		for i := range records {
			r := &records[i]
			total.Decisions++
			total.Admitted++
			budgets[r.Limit].paid += int64(r.Cost)
			if r.End < before {
				budgets[r.Limit].sure += int64(r.Cost)
			}
		}
	}
	client := server.NewClient(redis.Addr)
	defer client.Close()
	back, held, err := lapse(ctx, client, time.UnixMicro(last))
	if err != nil {
		return nil, err
	}
	total.Spurious += held
	limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(server.Patience)), quiet)
	look := func(b *budget, limit runtime.Limit) error {
		d, err := limiter.Peek(ctx, limit)
		b.charged = d.Limit - d.Remaining
		return err
	}
	for k := range budgets {
		b, rule := &budgets[k], &limits[k].rule
		b.max = rule.Max
		if err := look(b, limitsOf(rule, k, 1)[0]); err != nil {
			return nil, err
		}
		if b.rest, err = patient(ctx, limiter, rule, k); err != nil {
			return nil, err
		}
		over, spurious := b.faults(killed > 0)
		total.Over, total.Spurious = total.Over+over, total.Spurious+spurious
		if over+spurious > 0 {
			total.Notes = append(total.Notes, fmt.Sprintf("key %d: %+v", k, *b))
		}
		all.paid, all.sure, all.rest = all.paid+b.paid, all.sure+b.sure, all.rest+b.rest
	}
	if err := limiter.Close(); err != nil {
		return nil, err
	}
	if err := look(&all, limitsOf(tenant, 0, 1)[1]); err != nil {
		return nil, err
	}
	if low, high := 3*(all.sure+all.rest), 3*(all.paid+all.rest)+all.max/200; all.charged < low || all.charged > high {
		total.Wrong++
		total.Notes = append(total.Notes, fmt.Sprintf("the tenant is charged %d, want %d to %d", all.charged, low, high))
	}
	scripts, err := redis.Calls(ctx, "evalsha")
	total.Notes = append(total.Notes, fmt.Sprintf("%d messages of %d units were paid by %d scripts, and %d units by a patient caller in the end; %d processes were killed, and nothing was held %s",
		total.Admitted, all.paid, scripts, all.rest, killed, back))
	return total, err
}

// lapse returns when nothing is reserved any more that processes held until the last of them was
// killed, when that is, as text, and how many reservations there are for too long.
func lapse(ctx context.Context, client *redis.Client, last time.Time) (back string, held int, err error) {
	for back = "when the others had ended"; ; {
		held = 0
		now := time.Now()
		keys := client.ScanType(ctx, 0, "", 1000, "zset").Iterator()
		for keys.Next(ctx) {
			n, err := client.ZCount(ctx, keys.Val(), fmt.Sprint(now.UnixMicro()), "+inf").Result()
			if err != nil {
				return "", 0, err
			}
			held += int(n)
		}
		if err := keys.Err(); err != nil {
			return "", 0, err
		}
		after := now.Sub(last)
		if held == 0 || after > streamReserve+time.Second {
			return back, held, nil
		}
		back = fmt.Sprintf("%v after the last of them", after.Round(time.Millisecond))
		time.Sleep(10 * time.Millisecond)
	}
}
