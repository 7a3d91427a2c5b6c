// Compare measures rategen beside other limiters, on the same calls. It prints the
// decisions per second, the latency of calls, and the cost of a decision for Redis
// and for this program.
//
// It starts a redis-server of its own, or the server that RATEGEN_REDIS_SERVER
// names. All limiters run in several rounds, in changing order, and every number is
// the median of the rounds. A limiter that refuses a call although there is room, or
// admits one although there is none, gets no numbers, and a line that says so. If it
// is one of rategen's, the exit status is 1.
//
// Usage:
//
//	go run ./compare [-quick] [-runs n] [-only regexp] [-cases regexp] [-callers n,n] [-rounds n] [-away duration] [-cores n] [-write directory]
//
// It takes about five minutes. With -cores n this program and redis-server share n
// cores; by default they use the whole machine. With -write the numbers go into
// compare.md and callers.md in bench/results of a checkout. With -quick there is one
// short round: it shows that everything works, and its numbers mean little.
//
// With -runs n all is measured n times, one run after the other. The tables are those
// of the last run. Each target has the median of all runs, the least and the most. The
// median is what counts.
//
// With -only and -cases a part is measured, in seconds: the limiters whose names match
// one regular expression, beside those that all are compared with, in the cases whose
// headings match the other. Targets that need more say that they were not measured.
// With -callers the curve alone is measured, with these numbers of callers. With -away the
// answers of Redis come later by so much, through a proxy in this process.
// For example:
//
//	go run ./compare -callers 2,3,4 -only 'token-bucket'
//	go run ./compare -runs 5 -only 'packed|zset' -cases 'over Redis, (1 caller|256 callers), 1,000 keys admitted|size'
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/contest"
	"github.com/rategen/rategen/bench/internal/limiters"
	"github.com/rategen/rategen/bench/internal/page"
	"github.com/rategen/rategen/bench/internal/report"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/bench/internal/trial"
	"github.com/rategen/rategen/internal/progress"
	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/runtime"
)

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	}
	if o.cores > 0 {
		if err := pin(o.cores); err != nil {
			fmt.Fprintf(os.Stderr, "compare: only this program keeps to %d cores, redis-server does not: %v\n", o.cores, err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	var (
		runs   []*contest.Result
		faults []string
	)
	for i := range o.runs {
		result, err := measure(ctx, o.plan)
		if err != nil {
			return err
		}
		runs = append(runs, result)
		for _, fault := range result.Faults() {
			if o.runs > 1 {
				fault = fmt.Sprintf("run %d: %s", i+1, fault)
			}
			faults = append(faults, fault)
		}
	}
	report.Write(os.Stdout, report.Text, runs)
	if len(faults) > 0 {
		return errors.New("rategen did not do what it had to:\n" + strings.Join(faults, "\n"))
	}
	if o.checkout == "" {
		return nil
	}
	return publish(o.checkout, runs)
}

// measure starts a redis-server and has everything measured.
func measure(ctx context.Context, plan contest.Plan) (*contest.Result, error) {
	line := progress.New(os.Stderr)
	defer line.Clear()
	redisServer, err := server.Start()
	if err != nil {
		return nil, err
	}
	defer redisServer.Stop()
	if plan.Away == 0 {
		return measureOver(ctx, line, plan, redisServer, redisServer.Addr)
	}
	var result *contest.Result
	err = errors.New("no proxy could be started") // unless one is
	trial.Run(func(t *trial.Trial) {
		proxy := faultproxy.Start(t, redisServer.Addr)
		proxy.Delay(plan.Away)
		result, err = measureOver(ctx, line, plan, redisServer, proxy.Addr)
	})
	return result, err
}

// measureOver has everything measured over a server that clients reach by an address.
func measureOver(ctx context.Context, line *progress.Line, plan contest.Plan, redisServer *server.Server, addr string) (*contest.Result, error) {
	begin := time.Now()
	look := server.NewClient(redisServer.Addr) // its own, so that it never waits
	defer look.Close()
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: addr, PoolSize: plan.Connections}))
	defer client.Close()
	other, err := limiters.NewRueidis(addr)
	if err != nil {
		return nil, err
	}
	defer other.Close()
	over := limiters.Server{Client: client, Rueidis: other, Addr: addr, Connections: plan.Connections, Timeout: plan.Timeout}

	var result contest.Result
	if result.Facts, err = plan.Facts(ctx, look); err != nil {
		return nil, err
	}
	if result.Shared, err = plan.Shared(ctx, line, look, over); err != nil {
		return nil, err
	}
	if result.Curve, err = plan.Curve(ctx, line, look, over); err != nil {
		return nil, err
	}
	line.Show("sizes of keys")
	if result.Sizes, err = plan.Sizes(ctx, look, over); err != nil {
		return nil, err
	}
	if result.Local, err = plan.Local(ctx, line, over); err != nil {
		return nil, err
	}
	result.Took, result.Busy = time.Since(begin), contest.Busy()
	return &result, nil
}

// publish writes what was found into bench/results.
func publish(checkout string, runs []*contest.Result) error {
	last := runs[len(runs)-1]
	var curve bytes.Buffer
	report.Callers(&curve, last)
	if err := os.WriteFile(filepath.Join(checkout, "bench", "results", "callers.md"), curve.Bytes(), 0o644); err != nil {
		return err
	}
	if len(last.Shared) == 0 {
		return nil // the curve alone was measured
	}
	var measured bytes.Buffer
	report.Summary(&measured, last)
	report.Write(&measured, report.Markdown, runs)
	return page.Insert(filepath.Join(checkout, "bench", "results", "compare.md"), measured.Bytes())
}
