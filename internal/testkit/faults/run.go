package faults

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

const (
	// callers is how many goroutines call by each policy, and pause is for how
	// long each then rests.
	callers = 6
	pause   = 10 * time.Millisecond
	// processes is how many limiters the callers of a policy share. They have
	// nothing in common but Redis, as if each was in a process of its own.
	processes = 2
	// keys is how many keys of each tag they call on, one after the other.
	keys = 2
	// calm is for how long all must be well before a fault counts as over.
	calm = window
	// settleLimit is how long it may take until all is well again.
	settleLimit = time.Minute
	// warmLimit is how long it may take until the store decides before the fault, on a
	// machine that is busy with other tests.
	warmLimit = time.Minute
	// answerLimit is how long the last calls may take: it guards against a hang.
	answerLimit = time.Minute
)

// Traffic says what the callers do, in a sentence.
var Traffic = fmt.Sprintf("By each policy %d goroutines call, each %v after it was answered, on %d keys (%d on a cluster) "+
	"that admit %d in %v. They share %d limiters with a client each, which stand for as many processes; by `local` each of these admits %d",
	callers, pause, keys, 3*keys, perWindow, window, processes, perWindow/processes)

// silent keeps what limiters log.
var silent = slog.New(slog.DiscardHandler)

// policies are those that a fault is seen through, each by a limiter of its
// own.
var policies = []runtime.FailurePolicy{runtime.FailOpen, runtime.FailClosed, runtime.FailLocal}

// Run has callers call before, while and after a fault happens, which lasts as
// long as it is told unless it heals by itself, and returns what they saw by
// each policy. Their client has its default options, or those of
// [runtime.TuneRedis]. It fails the test if a call is not answered at all.
func Run(tb testing.TB, fault Fault, lasts time.Duration, tuned bool) []Seen {
	tb.Helper()
	return run(tb, fault, lasts, clients{tuned: tuned})
}

// RunOn is Run by another client than go-redis.
func RunOn(tb testing.TB, fault Fault, lasts time.Duration, open Open) []Seen {
	tb.Helper()
	return run(tb, fault, lasts, clients{open: open})
}

func run(tb testing.TB, fault Fault, lasts time.Duration, c clients) []Seen {
	tb.Helper()
	site := fault.set(tb, c)
	if len(site.tags) == 0 {
		site.tags = []string{"x"}
	}
	before := site.elections(tb)
	start := time.Now()
	var views []*view
	for _, policy := range policies {
		v := newView(site, policy, start)
		if err := v.warm(); err != nil {
			tb.Fatalf("%s: before the fault: %v", fault.Name, err)
		}
		views = append(views, v)
	}

	stop := make(chan struct{})
	var wait sync.WaitGroup
	for _, v := range views {
		for i := range callers {
			wait.Go(func() { v.call(i, stop) })
		}
	}
	time.Sleep(window) // of health, so that limits are full
	var t times
	t.begin = time.Since(start)
	site.begin()
	t.over = time.Since(start) // a busy machine takes long to have it happen
	t.end = t.over + lasts
	if !fault.Heals {
		time.Sleep(lasts)
		t.end = time.Since(start)
		site.end()
		t.over = time.Since(start)
	}
	for until := time.Now().Add(settleLimit); time.Now().Before(until); time.Sleep(pause) {
		settled := true
		for _, v := range views {
			settled = settled && v.settled(t.over, lasts)
		}
		if settled {
			break
		}
	}
	close(stop)
	t.stop = time.Since(start)

	answered := make(chan struct{})
	go func() { wait.Wait(); close(answered) }()
	select {
	case <-answered:
	case <-time.After(answerLimit):
		tb.Fatalf("%s: calls are not answered %v after they began", fault.Name, answerLimit)
	}
	// On a busy machine servers may take others for dead that are well, and replace these too.
	fault.Failovers = max(fault.Failovers, site.elections(tb)-before)
	var seen []Seen
	for _, v := range views {
		seen = append(seen, v.seen(fault, t))
		if err := v.close(); err != nil {
			tb.Errorf("%s: %v", fault.Name, err)
		}
	}
	return seen
}

// times are the moments of a run, counted from its start.
type times struct {
	begin, end time.Duration // of the fault; if it heals it lasts longer, or not so long
	over       time.Duration // from when on all should become well
	stop       time.Duration // of the callers
}
