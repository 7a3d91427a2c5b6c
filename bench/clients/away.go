package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// killRedis kills Redis in the midst of work, and returns what arrived later than a window
// after that, in two windows, and the calls that were not sent.
func (p part) killRedis(t testing.TB, c config, fail runtime.FailurePolicy) (f finding, late []arrival, undecided int) {
	r := p.newRun(c)
	server := redistest.Start(t)
	r.redis = server.Addr
	jobs := c.jobs(c.allCall, func(j *job) { j.Fail, j.Timeout = fail, runtime.DefaultTimeout })
	r.start(t, jobs)
	time.Sleep(c.window * 3 / 2)
	server.Kill()
	killed := time.Now()
	time.Sleep(3*c.window + time.Second)
	r.stop()
	for _, a := range r.seen() {
		if after := a.arrived.Sub(killed); after > c.window+c.window/10 && after < 3*c.window+c.window/10 {
			late = append(late, a)
		}
	}
	for i := range r.reports {
		undecided += r.reports[i].Undecided
	}
	return p.found(r, jobs), late, undecided
}

func awayClosed(t testing.TB, p part, c config) finding {
	f, late, undecided := p.killRedis(t, c, runtime.FailClosed)
	f.seen = fmt.Sprintf("%d requests were sent later than a window after that, and %d calls have failed with `ErrUnavailable`", len(late), undecided)
	if len(late) > 0 || undecided == 0 {
		t.Errorf("%s: %s", p.name, f.seen)
	}
	return f
}

func awayOpen(t testing.TB, p part, c config) finding {
	f, late, undecided := p.killRedis(t, c, runtime.FailOpen)
	refused := 0
	for _, a := range late {
		if a.refused {
			refused++
		}
	}
	f.seen = fmt.Sprintf("%d requests were sent in two windows, of which the peer has refused %d: each refusal holds back its replica for the second that the peer says. No call has failed", len(late), refused)
	if len(late) < c.most || refused == 0 || undecided > 0 {
		t.Errorf("%s: %s, %d have failed", p.name, f.seen, undecided)
	}
	return f
}

func awayLocal(t testing.TB, p part, c config) finding {
	f, late, undecided := p.killRedis(t, c, runtime.FailLocal)
	refused, sent := 0, make([]int, c.replicas)
	for _, a := range late {
		sent[a.replica]++
		if a.refused {
			refused++
		}
	}
	share := c.most / c.replicas
	f.seen = fmt.Sprintf("in two windows each replica has sent %d to %d requests, of twice %d as its share. The peer has refused %d", slices.Min(sent), slices.Max(sent), share, refused)
	if undecided > 0 || refused > 0 || slices.Max(sent) > 2*share+share || slices.Min(sent) < share {
		t.Errorf("%s: %s, %d have failed", p.name, f.seen, undecided)
	}
	return f
}
