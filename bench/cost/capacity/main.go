// Capacity says how much a Redis decides.
//
// Usage:
//
//	go run ./cost/capacity [-write results/capacity.md]
//
// For every algorithm it measures the processor time and the bytes that a decision costs a
// Redis, and prints how many decisions a second that is.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	write := flag.String("write", "", "file to write the measured table into")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measureAll(ctx, *write)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "capacity:", err)
		os.Exit(1)
	}
}
