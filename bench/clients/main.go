// Clients has eight processes call a strict peer over HTTP as fast as its limit lets
// them, and counts what it refuses.
//
// Each process is a replica with package rateclient and a client of one redis-server. The
// peer, which is this process, counts a request when it arrives, after a delay of 1 to 50
// ms that varies, and its answers are as long under way. It counts by a rolling window, by
// fixed windows, or by a token bucket. Controls have x/time/rate in each process, with an
// eighth of the limit.
//
// In other parts something happens: the peer refuses a request, or halves its limit, or
// Redis is away. At the end it measures what an admitted request costs.
//
// Usage:
//
//	go run ./clients [-for 10m] [-together n] [-run regexp] [-write results/clients.md]
//
// With -write the tables replace what stands between the lines "<!-- measured -->" and
// "<!-- /measured -->" of a file. The exit status is 1 if a replica was refused, less than
// 98 % of the limit was used, or something else was not as documented.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/bench/internal/page"
	"github.com/rategen/rategen/bench/internal/trial"
)

func main() {
	if runJob() {
		return
	}
	long := config{replicas: 8, callers: 3, most: 600, window: time.Minute}
	flag.DurationVar(&long.lasts, "for", 10*time.Minute, "how long a part lasts in which nothing happens")
	flag.DurationVar(&long.window, "window", long.window, "the peer's window in these parts")
	flag.IntVar(&long.most, "max", long.most, "requests in such a window")
	pattern := flag.String("run", "", "regular expression: only the parts whose names it matches")
	together := flag.Int("together", 3, "how many parts to run at a time")
	file := flag.String("write", "", "file to write the tables into")
	flag.Parse()
	wanted, err := regexp.Compile(*pattern)
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
	short := config{replicas: long.replicas, callers: long.callers, most: 104, window: 10 * time.Second}
	findings, ok1 := ask(long, steadies, wanted, *together)
	happened, ok2 := ask(short, incidents, wanted, *together)
	var out bytes.Buffer
	write(&out, long, findings)
	writeIncidents(&out, short, happened)
	ok3 := trial.Run(func(t *trial.Trial) { overhead(t, &out) })
	if err = page.Write(*file, out.Bytes()); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
	}
	if err != nil || !ok1 || !ok2 || !ok3 {
		os.Exit(1)
	}
}

// ask asks those of the parts that are wanted, some at a time, and reports whether all is
// as it should be.
func ask(c config, parts []part, wanted *regexp.Regexp, together int) (findings []finding, ok bool) {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return !wanted.MatchString(p.name) })
	findings = make([]finding, len(parts))
	free := make(chan struct{}, together)
	var failed atomic.Bool
	var wait sync.WaitGroup
	for i, p := range parts {
		free <- struct{}{}
		wait.Go(func() {
			if !trial.Run(func(t *trial.Trial) { findings[i] = p.ask(t, p, c) }) {
				failed.Store(true)
			}
			<-free
		})
	}
	wait.Wait()
	return findings, !failed.Load()
}
