// The command way makes calls of one kind on the Redis at an address. For each it writes
// down in a directory of its own which code the call has executed, and nothing of what
// comes before.
//
//	way address directory call|lease|permit
//
// It is built with -cover -covermode=atomic.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"path/filepath"
	"runtime/coverage"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/check/ways"
	"github.com/rategen/rategen/runtime"
)

func main() {
	address, dir, kind := os.Args[1], os.Args[2], os.Args[3]
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: address}))
	limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second)))
	rule := &runtime.Rule{Name: kind, Window: time.Minute, Max: 1000}
	switch kind {
	case "lease":
		rule.Lease = time.Second
	case "permit":
		rule.Algorithm = runtime.Concurrency
	}
	call := func() {
		limit := rule.Limit(runtime.NewKey().AddString("k"))
		d, err := limiter.Take(context.Background(), limit)
		if err != nil {
			log.Fatal(err)
		}
		if kind == "permit" {
			if err := limiter.Settle(context.Background(), d); err != nil {
				log.Fatal(err)
			}
		}
	}
	for range 300 { // what is done once, or by the first calls of a rule, is no part of the way
		call()
	}
	for i := range ways.Calls {
		time.Sleep(20 * time.Millisecond) // so that nothing is under way
		if err := coverage.ClearCounters(); err != nil {
			log.Fatal(err)
		}
		call()
		of := filepath.Join(dir, strconv.Itoa(i))
		if err := errors.Join(os.Mkdir(of, 0o700), coverage.WriteMetaDir(of), coverage.WriteCountersDir(of)); err != nil {
			log.Fatal(err)
		}
	}
}
