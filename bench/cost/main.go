// Cost measures what every algorithm costs Redis and prints it as a table in
// Markdown: the memory of a key that holds some events, as MEMORY USAGE has it,
// and for one decision the commands that the script calls and the time that it
// takes, as INFO commandstats has them; and how long the decision takes that is
// the most work.
//
// Usage:
//
//	go run ./cost [-write results/cost.md]
//
// With -write the tables replace what stands between the lines
// "<!-- measured -->" and "<!-- /measured -->" of a file.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/page"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/internal/progress"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// A way is one way to count.
type way struct {
	directive string
	rule      runtime.Rule
}

var ways = []way{
	{"`sliding-log` `storage=zset`", runtime.Rule{}},
	{"`sliding-log` `storage=packed`", runtime.Rule{Storage: runtime.StoragePacked}},
	{"`sliding-counter` `buckets=60`", runtime.Rule{Algorithm: runtime.SlidingCounter}},
	{"`sliding-counter` `buckets=6x10`", runtime.Rule{Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10)}},
	{"`sliding-counter` `buckets=auto`", runtime.Rule{Algorithm: runtime.SlidingCounter, Buckets: rule.AdaptiveBuckets()}},
	{"`fixed-window`", runtime.Rule{Algorithm: runtime.FixedWindow}},
	{"`token-bucket`", runtime.Rule{Algorithm: runtime.TokenBucket}},
	{"`leaky-bucket`", runtime.Rule{Algorithm: runtime.LeakyBucket}},
	{"`leaky-bucket` with `wait`", runtime.Rule{Algorithm: runtime.LeakyBucket, Wait: time.Hour}},
	{"`concurrency`", runtime.Rule{Algorithm: runtime.Concurrency}},
}

func main() {
	write := flag.String("write", "", "file to write the tables into")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *write)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string) error {
	started, err := server.Start()
	if err != nil {
		return err
	}
	defer started.Stop()
	client := server.NewClient(started.Addr)
	defer client.Close()
	store := runtime.NewRedisStore(client, runtime.WithTimeout(server.Patience), runtime.WithRefusalMemory(0))
	var out bytes.Buffer
	m := measured{&out, client, store, started.Product()}
	line := progress.New(os.Stderr)
	defer line.Clear()
	for i, part := range []struct {
		what    string
		measure func(context.Context) error
	}{
		{"memory of keys", m.memory},
		{"decisions", m.decisions},
		{"decisions that are the most work", m.worst},
	} {
		line.Steps(i, 3, part.what)
		if err := part.measure(ctx); err != nil {
			return err
		}
	}
	line.Clear()
	return page.Write(file, out.Bytes())
}

// measured is where costs are measured, and written to.
type measured struct {
	out     io.Writer
	client  *redis.Client
	store   *runtime.RedisStore
	product string // and its version
}

// take decides one call of cost 1 for each rule.
func take(ctx context.Context, store runtime.Store, rules []*runtime.Rule) ([]rawstore.Result, error) {
	calls := make([]rawstore.Call, len(rules))
	for i, rule := range rules {
		calls[i].Charges = []rawstore.Charge{{Rule: rule, Key: []byte(rule.Name), Max: rule.Max, Cost: 1, Wait: rule.Wait}}
	}
	if err := rawstore.Wrap(store).Take(ctx, calls); err != nil {
		return nil, err
	}
	results := make([]rawstore.Result, len(rules))
	for i := range calls {
		if err := calls[i].Err; err != nil {
			return nil, err
		}
		results[i] = calls[i].Charges[0].Result
	}
	return results, nil
}
