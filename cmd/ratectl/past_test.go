package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/limittest"
)

// lastYear has the counts of two rules be those of the last year.
func (b *bench) lastYear(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	zone, err := time.LoadLocation("Europe/Berlin")
	limittest.OK(t, err)
	end := time.Date(time.Now().In(zone).Year(), 1, 1, 0, 0, 0, 0, zone)
	begin := end.AddDate(-1, 0, 0)
	const plan, model = "orders:rate_limit:plan:acme%calendar", "orders:rate_limit:model:acme%reserved-period"
	state, err := b.client.Get(ctx, plan).Bytes()
	if err != nil || len(state) != 51 {
		t.Fatalf("%d bytes, %v", len(state), err)
	}
	for place, at := range map[int]time.Time{8: begin, 15: end, 44: begin} {
		for i := range 7 {
			state[place+i] = byte(at.UnixMicro() >> (8 * (6 - i)))
		}
	}
	b.client.Set(ctx, plan, state, redis.KeepTTL)
	b.client.ZAdd(ctx, model, redis.Z{Score: -float64(begin.UnixMicro()), Member: "start"}, redis.Z{Score: -float64(end.UnixMicro()), Member: "stop"})
	kept, err := b.client.ZRangeByScore(ctx, model, &redis.ZRangeBy{Min: "9007199254740991", Max: "+inf"}).Result()
	if err != nil || len(kept) != 1 {
		t.Fatalf("%q, %v", kept, err)
	}
	b.client.ZRem(ctx, model, kept[0])
	b.client.ZAdd(ctx, model, redis.Z{Score: 1<<53 - 1, Member: fmt.Sprintf("begun %d", begin.UnixMicro())})
}
