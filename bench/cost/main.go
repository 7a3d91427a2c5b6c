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
	"os"
	"os/signal"
	"syscall"
	"time"

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
	redis, err := server.Start()
	if err != nil {
		return err
	}
	defer redis.Stop()
	client := server.NewClient(redis.Addr)
	defer client.Close()
	product := redis.Product()
	var out bytes.Buffer
	line := progress.New(os.Stderr)
	defer line.Clear()
	line.Steps(0, 3, "memory of keys")
	if err := memory(ctx, &out, client, product); err != nil {
		return err
	}
	line.Steps(1, 3, "decisions")
	if err := decisions(ctx, &out, client, product); err != nil {
		return err
	}
	line.Steps(2, 3, "decisions that are the most work")
	if err := worst(ctx, &out, client, product); err != nil {
		return err
	}
	line.Clear()
	return page.Write(file, out.Bytes())
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
