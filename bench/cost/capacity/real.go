package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/rategen/rategen/bench/internal/server"
)

// realProcesses is how many there are in a comparison.
const realProcesses = 8

// A tally is what the calls of real processes were answered.
type tally struct{ Admitted, Refused, Undecided, Local int }

// compareReal has real processes make the calls of a plan, and prints the figures
// beside those of a simulation.
func compareReal(ctx context.Context, out io.Writer, t traffic, p plan) error {
	p.Processes, p.Shards, p.Fails = realProcesses, 1, -1
	if err := check(t, p); err != nil {
		return err
	}
	redis, err := server.Start(ctx)
	if err != nil {
		return err
	}
	defer redis.Stop()
	client := server.NewClient(redis.Socket)
	defer client.Close()
	before, err := usedBy(ctx, client)
	if err != nil {
		return err
	}
	sum, err := runWorkers(ctx, redis.Socket, t, p)
	if err != nil {
		return err
	}
	after, err := usedBy(ctx, client)
	if err != nil {
		return err
	}
	requests, err := redis.Calls(ctx, "evalsha")
	if err != nil {
		return err
	}
	calls := sum.Admitted + sum.Refused + sum.Undecided
	if calls == 0 {
		return fmt.Errorf("the processes made no calls")
	}
	c, err := costOfLog(ctx)
	if err != nil {
		return err
	}
	p.Cost, p.Trip = c, 100*time.Microsecond
	s := newSimulation(t, p)
	if err := s.run(ctx); err != nil {
		return err
	}
	simulated := s.judge.results[admitted] + s.judge.results[refused] + s.judge.results[undecided]
	percent := func(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }
	fmt.Fprintf(out, "%d processes, one Redis, %.0f calls a second for %v, lease %v\n\n", p.Processes, t.Rate, t.For, p.Lease)
	fmt.Fprint(out, "| | real | simulated |\n|---|---:|---:|\n")
	fmt.Fprintf(out, "| calls | %d | %d |\n", calls, simulated)
	for _, row := range []struct {
		name            string
		real, simulated float64
	}{
		{"admitted, %", percent(sum.Admitted, calls), percent(s.judge.results[admitted], simulated)},
		{"refused, %", percent(sum.Refused, calls), percent(s.judge.results[refused], simulated)},
		{"undecided, %", percent(sum.Undecided, calls), percent(s.judge.results[undecided], simulated)},
		{"answered without a request, %", percent(sum.Local, calls), percent(s.judge.local, simulated)},
		{"requests a call", float64(requests) / float64(calls), float64(s.shards[0].requests) / float64(simulated)},
		{"Redis busy, %", 100 * (after.cpu - before.cpu).Seconds() / t.For.Seconds(), 100 * s.shards[0].busy.Seconds() / t.For.Seconds()},
	} {
		fmt.Fprintf(out, "| %s | %.2f | %.2f |\n", row.name, row.real, row.simulated)
	}
	return nil
}

// runWorkers runs the processes and returns what they were answered together.
func runWorkers(ctx context.Context, socket string, t traffic, p plan) (sum tally, err error) {
	self, err := os.Executable()
	if err != nil {
		return sum, err
	}
	var wait sync.WaitGroup
	var mu sync.Mutex // guards what follows
	var failed error
	for i := range p.Processes {
		wait.Go(func() {
			cmd := exec.CommandContext(ctx, self, "-worker", socket, "-keys", strconv.Itoa(t.Keys),
				"-zipf", fmt.Sprint(t.Zipf), "-rate", fmt.Sprint(t.Rate), "-for", t.For.String(), "-burst", fmt.Sprint(t.Burst),
				"-processes", strconv.Itoa(p.Processes), "-max", strconv.FormatInt(p.Max, 10), "-window", p.Window.String(),
				"-lease", p.Lease.String(), "-seed", strconv.FormatUint(p.Seed+uint64(i), 10))
			cmd.Stderr = os.Stderr
			text, err := cmd.Output()
			var one tally
			if err == nil {
				err = json.Unmarshal(text, &one)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = fmt.Errorf("process %d: %w", i, err)
			}
			sum.Admitted += one.Admitted
			sum.Refused += one.Refused
			sum.Undecided += one.Undecided
			sum.Local += one.Local
		})
	}
	wait.Wait()
	return sum, failed
}
