// Faults does to a Redis what happens to one in production, one fault after the
// other, and prints as a table in Markdown what callers of a limiter see
// meanwhile. Every number is measured, and every server is a redis-server of
// its own, or the server that RATEGEN_REDIS_SERVER names.
//
// Usage:
//
//	go run ./faults [-short] [-together n] [-lasts duration] [-run regexp] [-write results/faults.md]
//
// Clients have their default options; those of a Redis far away have what runtime.TuneRedis
// sets. With -short only the faults of a short round happen, which takes about a minute, or
// with -together 2, two at a time, half of it. With -write the tables replace what stands
// between the lines "<!-- measured -->" and "<!-- /measured -->" of a file.
//
// The exit status is 1 if a call was not answered, if more was admitted than
// the formula above the table allows, or if limits were not enforced again.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/rategen/rategen/bench/internal/page"
	"github.com/rategen/rategen/bench/internal/trial"
	"github.com/rategen/rategen/internal/progress"
	"github.com/rategen/rategen/internal/testkit/faults"
)

func main() {
	short := flag.Bool("short", false, "a short round")
	pattern := flag.String("run", "", "regular expression: only the faults whose names it matches")
	file := flag.String("write", "", "file to write the tables into")
	lasts := flag.Duration("lasts", 0, "how long a fault lasts that does not heal by itself; 0: 2s, or 1s in a short round")
	together := flag.Int("together", 1, "how many faults to look at at a time")
	flag.Parse()
	if *lasts == 0 {
		*lasts = 2 * time.Second
		if *short {
			*lasts = time.Second
		}
	}
	logging.Disable() // go-redis logs every failure
	ok, err := run(*short, *pattern, *file, *lasts, *together)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// A row is a fault and what was seen of it.
type row struct {
	fault  faults.Fault
	seen   []faults.Seen
	failed bool
}

// tries is how often a fault happens whose end is not seen: on a machine that is busy for all the
// time a Redis that is well is as slow as one that is not.
const tries = 3

func run(short bool, pattern, file string, lasts time.Duration, together int) (bool, error) {
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return false, err
	}
	line := progress.New(os.Stderr)
	defer line.Clear()
	var rows []*row
	for _, fault := range faults.All() {
		if wanted.MatchString(fault.Name) && (fault.Quick || !short) {
			rows = append(rows, &row{fault: fault})
		}
	}
	var product string
	if !trial.Run(func(t *trial.Trial) { product = faults.Product(t) }) {
		return false, errors.New("no server starts")
	}
	ok := true
	var distances []faults.Distance
	if wanted.MatchString("distance") {
		line.Show("distances")
		ok = trial.Run(func(t *trial.Trial) { distances = faults.Distances(t, short) })
	}
	var wait sync.WaitGroup
	free := make(chan struct{}, together)
	for i, r := range rows {
		free <- struct{}{}
		line.Steps(i, len(rows), string(r.fault.Where)+": "+r.fault.Name)
		wait.Go(func() {
			for try, late := 0, true; late && !r.failed && try < tries; try++ {
				r.failed = !trial.Run(func(t *trial.Trial) { r.seen = faults.Run(t, r.fault, lasts, false) })
				late = slices.ContainsFunc(r.seen, func(s faults.Seen) bool { return s.Late() != "" })
			}
			<-free
		})
	}
	wait.Wait()
	line.Clear()
	for _, r := range rows {
		ok = ok && !r.failed
		for _, s := range r.seen {
			if complaint := s.Complaint(); complaint != "" {
				fmt.Fprintf(os.Stderr, "faults: %s: %s: %v: %s\n", r.fault.Where, r.fault.Name, s.Policy, complaint)
				ok = false
			}
		}
	}
	var out bytes.Buffer
	write(&out, product, rows, distances, lasts)
	return ok, page.Write(file, out.Bytes())
}
