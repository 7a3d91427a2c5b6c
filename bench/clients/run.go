package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/strictpeer"
)

// A run is replicas that call a peer, and what the peer has seen of them.
type run struct {
	peer      *strictpeer.Peer
	refuse    atomic.Bool // the next request, with Retry-After: 2
	announces bool        // its limit, and for how long to hold off
	redis     string      // the address that replica i has is redis, unless others says so
	others    map[int]string

	tb       testing.TB
	server   *httptest.Server
	replicas []*replica
	reports  []report
	ended    time.Time

	mu  sync.Mutex
	all []arrival
}

// An arrival is a request, as the peer has seen it.
type arrival struct {
	replica, call         int
	sent, arrived, answer time.Time // sent, but for the network of this machine
	refused               bool
}

// A replica is a process of its own.
type replica struct {
	command *exec.Cmd
	in      io.Closer
	out     *json.Decoder
}

// delay is how long a request is on its way, or an answer.
func delay() { time.Sleep(time.Millisecond + rand.N(49*time.Millisecond)) }

func (r *run) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	a := arrival{sent: time.Now()}
	a.replica, _ = strconv.Atoi(request.Header.Get("Replica"))
	a.call, _ = strconv.Atoi(request.Header.Get("Call"))
	delay()
	after, admitted := "1", false
	if r.refuse.CompareAndSwap(true, false) {
		a.arrived, after = time.Now(), "2"
	} else {
		a.arrived, admitted = r.peer.Arrive()
	}
	a.refused = !admitted
	if r.announces {
		most, wait := r.peer.Limit()
		w.Header().Set("RateLimit-Policy", fmt.Sprintf(`"peer";q=%d;w=%d`, most, int(r.peer.Window.Seconds())))
		after = strconv.Itoa(int(wait.Seconds()) + 1)
	}
	delay()
	a.answer = time.Now()
	r.mu.Lock()
	r.all = append(r.all, a)
	r.mu.Unlock()
	if a.refused {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// start starts as many replicas as there are jobs.
func (r *run) start(tb testing.TB, jobs []job) {
	tb.Helper()
	r.tb, r.server = tb, httptest.NewServer(r)
	tb.Cleanup(r.server.Close)
	for i, j := range jobs {
		j.Replica, j.Replicas, j.URL, j.Redis = i, len(jobs), r.server.URL, r.redis
		if other := r.others[i]; other != "" {
			j.Redis = other
		}
		text, err := json.Marshal(j)
		if err != nil {
			tb.Fatalf("a job: %v", err)
		}
		program, err := os.Executable()
		if err != nil {
			tb.Fatalf("this program: %v", err)
		}
		p := &replica{command: exec.Command(program)}
		p.command.Env, p.command.Stderr = append(os.Environ(), variable+"="+string(text)), os.Stderr
		in, err1 := p.command.StdinPipe()
		out, err2 := p.command.StdoutPipe()
		if err1 != nil || err2 != nil {
			tb.Fatalf("a replica: %v, %v", err1, err2)
		}
		if err := p.command.Start(); err != nil {
			tb.Fatalf("a replica: %v", err)
		}
		p.in, p.out = in, json.NewDecoder(out)
		r.replicas = append(r.replicas, p)
	}
	tb.Cleanup(func() {
		for _, p := range r.replicas {
			_ = p.command.Process.Kill() // does nothing to one that has ended
		}
	})
}

// stop ends the replicas.
func (r *run) stop() {
	r.tb.Helper()
	r.ended = time.Now()
	for _, p := range r.replicas {
		_ = p.in.Close()
	}
	for i, p := range r.replicas {
		var said report
		err := p.out.Decode(&said)
		if e := p.command.Wait(); err == nil {
			err = e
		}
		if err != nil {
			r.tb.Errorf("replica %d: %v", i, err)
		}
		if len(said.Failed) > 0 {
			r.tb.Errorf("replica %d: calls have failed: %q", i, said.Failed)
		}
		r.reports = append(r.reports, said)
	}
}

// seen returns the requests so far, in the order of their arrival.
func (r *run) seen() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.all)
	slices.SortFunc(all, func(a, b arrival) int { return a.arrived.Compare(b.arrived) })
	return all
}

// served returns how many requests of each replica were served.
func (r *run) served() []int {
	served := make([]int, len(r.replicas))
	for _, a := range r.seen() {
		if !a.refused {
			served[a.replica]++
		}
	}
	return served
}

// longest returns the longest time that a call has taken.
func (r *run) longest() (longest time.Duration) {
	for i := range r.reports {
		longest = max(longest, r.reports[i].Longest)
	}
	return longest
}
