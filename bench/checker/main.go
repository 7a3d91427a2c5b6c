// Checker proves on a real redis-server that limits are exact.
//
// It starts a redis-server of its own, or the server that RATEGEN_REDIS_SERVER
// names. Then, for one algorithm after the
// other, several processes hammer the same keys with calls of mixed costs, and
// record what became of every call and when it was, by the clock of Redis.
// Afterwards a sweep over all records asks, of every single decision:
//
//	over      was it admitted although the limit had no room?
//	spurious  was it refused although the limit had room?
//	wrong     was its time, its RetryAfter or its delay in a queue another
//	          than it had to be?
//
// Whether there was room is computed anew from the calls that were admitted
// before, see the sweep's checks; nothing that the limiter says of itself is
// believed. A sliding counter may refuse a call for up to the width of a bucket
// longer than the window, and for it a refusal within that is not spurious.
//
// So far a process sends many calls at once, and Redis decides all of them. In
// the runs called shared every call is one of its own: calls share batches, those
// that are alike become one charge, and a process refuses by itself what Redis
// would refuse. When such a refusal was is not known by Redis's clock, but it must
// have been right at some moment of the call, which is short.
//
// In the runs called settled calls are settled at another cost than they reserved,
// by two goroutines at once, in windows that never end. What Redis has counted in
// the end must be what all calls cost in the end.
//
// In the runs called leased processes admit calls by leases, see runtime.Rule. They are
// stopped for a while, and some are killed. No window may hold more calls that began
// and ended within it than the limit admits.
//
// In the run called streams each process has 125 streams at once, which top up, are
// cancelled and end, and calls that are settled. Some processes are killed. What is used,
// but in the last two seconds of those, stays charged; nothing else does, and what they held
// is back within its reserve and a second; one patient caller can then use all that is left.
//
// Each sweep that has found nothing is made again over decisions that are made wrong or left
// out, see the tampers, and must find those. At the end come controls, which must be found out:
// one leaves out one settlement in 500, one leases units without counting them for
// longer, and one lets events leave their window too soon.
//
// Usage:
//
//	go run ./checker [flags]
//
// With -duration the algorithms share the time, and a process fails whose memory or
// goroutines grow from the second third of its time to the last.
//
// The exit status is 0 if every algorithm is without fault and no control is, and 1 otherwise.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// config is what the flags say. A process that hammers is told the same.
type config struct {
	processes  int
	decisions  int
	duration   time.Duration
	keys       int
	algorithms string
	freeze     time.Duration
}

func main() {
	var c config
	var w worker
	flag.IntVar(&c.processes, "processes", 8, "how many processes hammer")
	flag.IntVar(&c.decisions, "decisions", 1_000_000, "how many decisions to make in total, the controls' not counted")
	flag.DurationVar(&c.duration, "duration", 0, "how long to hammer in total, in place of -decisions")
	flag.IntVar(&c.keys, "keys", 8, "how many keys an algorithm has")
	flag.StringVar(&c.algorithms, "algorithms", strings.Join(names(), ","), "which algorithms to check, separated by commas")
	flag.DurationVar(&c.freeze, "freeze", 0, "for how long to stop the server several times a second, so that scripts last longer than windows; 0: never")
	flag.StringVar(&w.addr, "worker", "", "for the checker's own use: hammer the server at this address")
	flag.StringVar(&w.output, "output", "", "for the checker's own use: where to write the records")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if w.addr != "" {
		w.config = c
		if err := w.run(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "checker: process:", err)
			os.Exit(1)
		}
		return
	}
	ok, err := check(ctx, c)
	if err != nil {
		fmt.Fprintln(os.Stderr, "checker:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1)
	}
}

// check runs every algorithm and the controls, prints what it finds, and
// reports whether that is what it should be.
func check(ctx context.Context, c config) (bool, error) {
	if flag.NArg() > 0 || c.processes < 1 || c.keys < 1 || c.keys > maxKeys || c.decisions < 1 || c.duration < 0 || c.freeze < 0 {
		return false, fmt.Errorf("flags out of range, or arguments that are not flags; see -help")
	}
	asked := strings.Split(c.algorithms, ",")
	for _, name := range asked {
		if algorithms[name] == nil {
			return false, fmt.Errorf("unknown algorithm %q, it is one of %s", name, strings.Join(names(), " "))
		}
	}
	report := newReport(c)
	share := c
	share.decisions = (c.decisions + len(asked) - 1) / len(asked)
	share.duration = c.duration / time.Duration(len(asked))
	wrong := []string{controlName}
	for _, name := range asked {
		if err := report.run(ctx, name, share); err != nil {
			return false, err
		}
		if algorithms[name].settled {
			wrong = append(wrong, forgetful)
		}
		if algorithms[name].leased {
			wrong = append(wrong, unlengthened)
		}
	}
	report.row("total", &report.sum, report.elapsed)
	// In some moments only are leased units used late, so a control is not short.
	share.decisions, share.duration = min(max(share.decisions, 50_000), 100_000), 0
	slices.Sort(wrong)
	for _, name := range slices.Compact(wrong) {
		if err := report.run(ctx, name, share); err != nil {
			return false, err
		}
	}
	return report.verdict(), nil
}
