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
// Redis is away.
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
	"sync"
	"time"

	"github.com/rategen/rategen/bench/internal/page"
	"github.com/rategen/rategen/bench/internal/trial"
)

func main() {
	if runJob() {
		return
	}
	c := config{replicas: 8, callers: 3, most: 104, window: 10 * time.Second}
	flag.DurationVar(&c.lasts, "for", 10*time.Minute, "how long a part lasts in which nothing happens")
	flag.DurationVar(&c.window, "window", c.window, "the peer's window")
	flag.IntVar(&c.most, "max", c.most, "requests in a window")
	pattern := flag.String("run", "", "regular expression: only the parts whose names it matches")
	together := flag.Int("together", 3, "how many parts to run at a time")
	file := flag.String("write", "", "file to write the tables into")
	flag.Parse()
	wanted, err := regexp.Compile(*pattern)
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
	findings, ok := ask(c, wanted, *together)
	var out bytes.Buffer
	write(&out, c, findings)
	if *file != "" {
		err = page.Insert(*file, out.Bytes())
	} else {
		_, err = os.Stdout.Write(out.Bytes())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// ask asks all parts, some at a time, and reports whether all is as it should be.
func ask(c config, wanted *regexp.Regexp, together int) (findings []finding, ok bool) {
	var asked []part
	for _, p := range parts {
		if wanted.MatchString(p.name) {
			asked = append(asked, p)
		}
	}
	findings = make([]finding, len(asked))
	failed := make([]bool, len(asked))
	free := make(chan struct{}, together)
	var wait sync.WaitGroup
	for i, p := range asked {
		free <- struct{}{}
		wait.Go(func() {
			failed[i] = !trial.Run(func(t *trial.Trial) { findings[i] = p.ask(t, p, c) })
			<-free
		})
	}
	wait.Wait()
	ok = len(asked) > 0
	for _, f := range failed {
		ok = ok && !f
	}
	return findings, ok
}
