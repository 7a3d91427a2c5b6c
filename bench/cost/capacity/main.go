// Capacity says how much a Redis decides, and simulates many processes and a cluster.
//
// Usage:
//
//	go run ./cost/capacity [-write results/capacity.md]
//	go run ./cost/capacity -simulate [-processes 1000] [-shards 6] [-lease 50ms] …
//
// Without a mode it measures, for every algorithm, the processor time and the bytes
// that a decision costs a Redis, and prints how many decisions a second that is.
//
// With -simulate it simulates processes that call a cluster, in virtual time: keys by
// a Zipf distribution, a burst, a shard that stops for a while. It prints the load of
// the shards, how calls were answered, and the worst over- and under-admission.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	var (
		t        = traffic{Keys: 100_000, Zipf: 1.1, Rate: 200_000, For: 10 * time.Second, Burst: 3}
		p        = plan{Processes: 1000, Shards: 6, Max: 100, Window: time.Second, Trip: 500 * time.Microsecond, Fails: -1, Seed: 1}
		write    = flag.String("write", "", "file to write the measured table into")
		simulate = flag.Bool("simulate", false, "simulate processes and a cluster")
	)
	flag.IntVar(&t.Keys, "keys", t.Keys, "number of keys")
	flag.Float64Var(&t.Zipf, "zipf", t.Zipf, "exponent of the Zipf distribution of keys, above 1")
	flag.Float64Var(&t.Rate, "rate", t.Rate, "calls a second of all processes together")
	flag.DurationVar(&t.For, "for", t.For, "length of the simulation")
	flag.Float64Var(&t.Burst, "burst", t.Burst, "factor of the rate in the middle tenth of the time")
	flag.IntVar(&p.Processes, "processes", p.Processes, "number of processes")
	flag.IntVar(&p.Shards, "shards", p.Shards, "number of masters of the cluster")
	flag.Int64Var(&p.Max, "max", p.Max, "limit of each key")
	flag.DurationVar(&p.Window, "window", p.Window, "window of the limit")
	flag.DurationVar(&p.Lease, "lease", p.Lease, "lease of the limit; 0: none")
	flag.DurationVar(&p.Trip, "trip", p.Trip, "time that a request and its answer take on the wire")
	flag.IntVar(&p.Fails, "fails", p.Fails, "shard that stops for a fifth of the time; -1: none")
	flag.Float64Var(&p.Cost.Trip, "cost-trip", 0, "microseconds of Redis a request; 0: measured")
	flag.Float64Var(&p.Cost.Key, "cost-key", 0, "microseconds of Redis a key in a request; 0: measured")
	flag.Uint64Var(&p.Seed, "seed", p.Seed, "of random numbers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if *simulate {
		err = simulateOnly(ctx, os.Stdout, t, p)
	} else {
		err = measureAll(ctx, *write)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "capacity:", err)
		os.Exit(1)
	}
}

// check returns an error that says what is wrong with the flags.
func check(t traffic, p plan) error {
	switch {
	case t.Keys < 1 || t.Zipf <= 1 || !(t.Rate > 0) || t.For < time.Second || !(t.Burst >= 1):
		return fmt.Errorf("want -keys from 1, -zipf above 1, -rate above 0, -for from 1s and -burst from 1")
	case p.Processes < 1 || p.Shards < 1 || p.Max < 1 || p.Window <= 0 || p.Trip < 0:
		return fmt.Errorf("want -processes, -shards and -max from 1, -window above 0 and -trip from 0")
	case p.Lease < 0 || p.Lease >= p.Window:
		return fmt.Errorf("want -lease below -window")
	case p.Fails >= p.Shards:
		return fmt.Errorf("want -fails below -shards: shards count from 0")
	case p.Cost.Trip < 0 || p.Cost.Key < 0:
		return fmt.Errorf("want -cost-trip and -cost-key from 0")
	}
	return nil
}

func simulateOnly(ctx context.Context, out *os.File, t traffic, p plan) error {
	if err := check(t, p); err != nil {
		return err
	}
	if p.Cost == (cost{}) {
		c, err := costOfLog(ctx)
		if err != nil {
			return err
		}
		p.Cost = c
	}
	s := newSimulation(t, p)
	if err := s.run(ctx); err != nil {
		return err
	}
	s.report(out)
	return nil
}
