// Compare measures rategen beside other limiters, on the same calls. It prints the
// decisions per second, the time of a call and the size of keys.
//
// It starts a redis-server of its own, or the server that RATEGEN_REDIS_SERVER
// names. All limiters run in several rounds, in changing order, and every number is
// the median of the rounds. A limiter that refuses a call although there is room, or
// admits one although there is none, gets no numbers, and a line that says so. If it
// is one of rategen's, the exit status is 1.
//
// Usage:
//
//	go run ./compare [-quick] [-only regexp] [-cases regexp] [-callers n,n] [-rounds n] [-cores n] [-write directory]
//
// It takes about five minutes. With -cores n this program and redis-server share n
// cores; by default they use the whole machine. With -write the numbers go into
// compare.md and callers.md in bench/results of a checkout. With -quick there is one
// short round: it shows that everything works, and its numbers mean little.
//
// With -only and -cases a part is measured, in seconds: the limiters whose names match
// one regular expression, beside those that all are compared with, in the cases whose
// headings match the other. With -callers the curve alone is measured, with these numbers
// of callers. For example:
//
//	go run ./compare -callers 2,3,4 -only 'token-bucket'
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/contest"
	"github.com/rategen/rategen/bench/internal/limiters"
	"github.com/rategen/rategen/bench/internal/page"
	"github.com/rategen/rategen/bench/internal/report"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/internal/progress"
	"github.com/rategen/rategen/runtime"
)

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	status := 2
	if err == nil {
		status = 1
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, o)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(status)
	}
}

func run(ctx context.Context, o options) error {
	if o.cores > 0 {
		if err := pin(o.cores); err != nil {
			return err
		}
	}
	result, err := measure(ctx, o.plan)
	if err != nil {
		return err
	}
	report.Write(os.Stdout, result)
	report.Curve(os.Stdout, result.Curve)
	if faults := result.Faults(); len(faults) > 0 {
		return errors.New("rategen did not do what it had to:\n" + strings.Join(faults, "\n"))
	}
	if o.checkout == "" {
		return nil
	}
	return publish(o.checkout, result)
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
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: redisServer.Addr, PoolSize: plan.Connections}))
	defer client.Close()
	other, err := limiters.NewRueidis(redisServer.Addr)
	if err != nil {
		return nil, err
	}
	defer other.Close()
	over := limiters.Server{Client: client, Rueidis: other, Addr: redisServer.Addr, Connections: plan.Connections, Timeout: plan.Timeout}
	return plan.Run(ctx, line, over)
}

// publish writes what was found into bench/results.
func publish(checkout string, result *contest.Result) error {
	var curve, measured bytes.Buffer
	report.Callers(&curve, result)
	if err := os.WriteFile(filepath.Join(checkout, "bench", "results", "callers.md"), curve.Bytes(), 0o644); err != nil {
		return err
	}
	if len(result.Shared) == 0 {
		return nil // the curve alone was measured
	}
	report.Write(&measured, result)
	return page.Insert(filepath.Join(checkout, "bench", "results", "compare.md"), measured.Bytes())
}

// pinned is set for a program that runs on the cores it was asked to.
const pinned = "RATEGEN_BENCH_PINNED"

// pin has this program, and the redis-server that it will start, run on the first n cores of the
// machine together, by starting itself anew.
func pin(n int) error {
	goruntime.GOMAXPROCS(n)
	if os.Getenv(pinned) != "" {
		return nil
	}
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := append([]string{taskset, "-c", fmt.Sprintf("0-%d", n-1), self}, os.Args[1:]...)
	return syscall.Exec(taskset, args, append(os.Environ(), pinned+"=yes"))
}
