// Soak has limits work for an hour, or as long as it is told, and shows whether
// anything grows or is ever decided wrongly.
//
// It starts a standalone redis-server and a cluster of its own, or servers that
// RATEGEN_REDIS_SERVER names. One process stays; others come and go, and one in each
// round is killed. They call limits of every algorithm, with costs, refunds,
// settlements, permits, blocks, several limits on a call, overrides that change and
// failure policies. In every second round something happens to a Redis: silence, lost
// replies, a server that is killed, stopped or replaced.
//
// After each round all calls are judged. A call on a log or a fixed window whose
// Redis lost nothing is judged exactly, as by the checker: no decision may be over,
// spurious or wrong, nor its RetryAfter. All others are judged by what they prove
// whatever happened: what was admitted in a window for certain, and what could have
// been.
//
// The table has a line for each part of the time: what was judged, and what the
// process that stays has in use when it rests, after a collection: memory of its
// heap, resident memory, goroutines; and the memory and keys of all servers.
//
// Usage:
//
//	go run ./checker/soak [-for 1h] [-round 20s] [-rate 60] [-profiles DIR] [-write results/soak.md]
//
// The exit status is 1 if a decision was wrong, if memory or goroutines grew, or if
// goroutines were left when the limiters were closed. A run of less than twelve
// rounds is too short to say whether memory grows.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rategen/rategen/bench/internal/page"
	"github.com/rategen/rategen/bench/internal/trial"
	"github.com/rategen/rategen/internal/progress"
	"github.com/redis/go-redis/v9/logging"
)

// config is what the flags say.
type config struct {
	lasts  time.Duration
	round  time.Duration
	rate   float64
	rounds uint32
	// profiles is the directory for heap profiles of the process that stays.
	profiles string
}

func main() {
	var c config
	flag.DurationVar(&c.lasts, "for", time.Hour, "how long to soak")
	flag.DurationVar(&c.round, "round", 20*time.Second, "how long a round is, in the middle of which something happens")
	flag.Float64Var(&c.rate, "rate", 60, "calls a second, of all processes")
	write := flag.String("write", "", "file to write the table into")
	flag.StringVar(&c.profiles, "profiles", "", "directory to write the heap of the process that stays into, after each round")
	text := flag.String("process", "", "for soak's own use: be a process with these orders")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *text != "" {
		err = serve(ctx, *text, os.Stdout)
	} else {
		err = soak(ctx, c, *write)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		stop()
		os.Exit(1)
	}
}

func soak(ctx context.Context, c config, file string) error {
	if flag.NArg() > 0 || c.lasts < c.round || c.round < 2*time.Second || c.rate <= 0 {
		return errors.New("flags out of range, or arguments that are not flags; see -help")
	}
	c.rounds = uint32(c.lasts / c.round)
	logging.Disable()
	line := progress.New(os.Stderr)
	d := &director{config: c, line: line}
	var table *table
	var err error
	started := trial.Run(func(t *trial.Trial) {
		if err = d.begin(ctx, t); err == nil {
			table, err = d.run(ctx, d.Server.Product())
		}
	})
	line.Clear()
	if err == nil && !started {
		err = errors.New("a server did not start, or not again")
	}
	if table == nil {
		return err
	}
	var out bytes.Buffer
	verdict := table.write(&out)
	_, _ = os.Stdout.Write(out.Bytes())
	if file != "" && err == nil {
		err = page.Insert(file, out.Bytes())
	}
	return errors.Join(err, verdict)
}

// run has round after round made and judged.
func (d *director) run(ctx context.Context, product string) (*table, error) {
	t := &table{config: d.config, product: product, begin: time.Now()}
	for round := range d.rounds {
		begin := d.start.Add(time.Duration(round) * d.round)
		c, happened, err := d.happen(ctx, round, begin)
		if err != nil {
			return t, err
		}
		sleepUntil(ctx, begin.Add(calling(d.round)))
		entries, self, err := d.await(ctx, round)
		if err != nil {
			return t, err
		}
		v := judgeRound(entries, c)
		memory, keys := d.held()
		t.add(row{verdict: *v, report: self, memory: memory, keys: keys, happened: happened})
		t.visits, t.kills = d.visits, d.kills
		d.line.Show("%v of %v: %d calls, %d wrong, %.1f MB, %d goroutines",
			time.Since(d.start).Round(time.Second), d.lasts, t.sum.Calls, t.sum.faults(), float64(self.Resident)/1e6, self.Goroutines)
	}
	return t, d.end(ctx)
}
