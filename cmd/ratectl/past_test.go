package main

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// TestUsagePast wants an operator to see what a caller has used of former periods, also
// while an override admits nothing, and after an export and an import.
func TestUsagePast(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	const line = `{"file":"a.go","line":9,"interface":"Plans","key":["#tenant"],"window":"year","tz":"Europe/Berlin","keep":%d%s,"max":"100","algorithm":"fixed-window","prefix":"rate_limit:%s:","name":"%[3]s","mode":"enforce"}` + "\n"
	rules := fmt.Sprintf(line, 2, "", "plan") + fmt.Sprintf(line, 3, `,"reserve":"1h0m0s"`, "model")
	if err := os.WriteFile(b.env["RATECTL_RULES"], []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	b.readRules(t)
	for name := range b.rules {
		b.take(t, 7, name, 0, "acme")
		b.run("usage", name, "acme").wants(t, 0, `LIMIT.*ok\nSTART +END +USED\n\S+ +\S+ +0\n\S+ +\S+ +0\n.*`, "")
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	year := time.Now().In(zone).Year()
	begin, end := time.Date(year-1, 1, 1, 0, 0, 0, 0, zone), time.Date(year, 1, 1, 0, 0, 0, 0, zone)
	b.lastYear(t, begin, end)

	row := func(year int, used string) string {
		return fmt.Sprintf(`%d-01-01T00:00:00\+01:00 +%d-01-01T00:00:00\+01:00 +%s\n`, year, year+1, used)
	}
	const head = `LIMIT +USED +LEFT +WINDOW +RESET +STATE\n`
	const past = `START +END +USED\n`
	wants := func() {
		t.Helper()
		b.run("usage", "plan", "acme").wants(t, 0, head+`100 +0 +100 +year +\d+h\S* +ok\n`+past+row(year-1, "7")+row(year-2, "0"), "")
		b.run("usage", "model", "acme").wants(t, 0, head+`100 +0 +100 +year +\d+h\S* +ok\n`+past+row(year-1, "7")+row(year-2, "0")+row(year-3, "0"), "")
		b.run("usage", "plan", "nobody").wants(t, 0, head+`100 +0 +100 +year +\d+h\S* +ok\n`+past+row(year-1, "0")+row(year-2, "0"), "")
	}
	wants()
	b.run("-o", "json", "usage", "plan", "acme").wants(t, 0, fmt.Sprintf(`\{"rule":"plan",.*"reset_after_ms":\d+,"past":\[\{"start":"%d-01-01T00:00:00\+01:00","end":"%d-01-01T00:00:00\+01:00","used":7\},\{.*"used":0\}\]\}\n`, year-1, year), "")
	b.run("override", "set", "plan", "-keys", "acme", "-max", "0", "-yes").wants(t, 0, `.*`, "")
	b.run("usage", "plan", "acme").wants(t, 0, head+`0 +0 +0 +year +\S+ +blocked\n`+past+row(year-1, "7")+row(year-2, "0"), "")
	b.run("override", "rm", "plan", "-keys", "acme").wants(t, 0, `.*`, "")

	b.in = b.run("export").out
	b.client.Del(t.Context(), "orders:rate_limit:plan:acme%calendar", "orders:rate_limit:model:acme%reserved-period")
	b.run("import", "-yes", "-").wants(t, 0, `RULE.*plan +1 +0 +0 +0\nmodel +1 +0 +0 +0\n`, "")
	b.in = ""
	wants()
	b.take(t, 1, "plan", 0, "acme")
	b.take(t, 1, "model", 0, "acme")
	b.run("usage", "plan", "acme").wants(t, 0, head+`100 +1 +99 +year +\d+h\S* +ok\n`+past+row(year-1, "7")+row(year-2, "0"), "")
	b.run("usage", "model", "acme").wants(t, 0, head+`100 +1 +99 +year +\d+h\S* +ok\n`+past+row(year-1, "7")+row(year-2, "0")+row(year-3, "0"), "")
	b.run("reset", "-yes", "plan", "acme").wants(t, 0, `.*`, "")
	b.run("usage", "plan", "acme").wants(t, 0, head+`100 +0 +100 +year +\d+h\S* +ok\n`+past+row(year-1, "0")+row(year-2, "0"), "")
	// What no limit writes is told, and nothing is made of it.
	b.client.Append(t.Context(), "orders:rate_limit:plan:acme%calendar", "x")
	b.run("usage", "plan", "acme").wants(t, 1, "", `ratectl: acme of rule plan is broken, since another program has written this key: ratectl reset removes it\n`)
}

// lastYear has the counts be those of another year.
func (b *bench) lastYear(t *testing.T, begin, end time.Time) {
	t.Helper()
	ctx := t.Context()
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
