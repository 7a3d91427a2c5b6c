package main

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/internal/testkit/strictpeer"
	"github.com/rategen/rategen/runtime"
)

// config is what all parts have in common.
type config struct {
	replicas int
	callers  int // of each replica
	most     int // requests in a window
	window   time.Duration
	margin   time.Duration // 0: that of rateclient
	lasts    time.Duration // of a part in which nothing happens
}

// A part is one question to replicas and a peer.
type part struct {
	name   string
	admits strictpeer.Count
	ask    func(t testing.TB, p part, c config) finding
}

// A finding is the answer.
type finding struct {
	part
	steady
	seen string // of what happened; empty: nothing did
}

// steady is what is found where nothing happens.
type steady struct {
	client                  string
	callers                 []int
	sent, refused           int
	used                    float64
	leastServed, mostServed int // by a replica that calls
	longest                 time.Duration
}

// steadies are parts in which nothing happens.
var steadies = []part{
	{"rolling window", strictpeer.Rolling, among(config.allCall)},
	{"fixed window", strictpeer.Fixed, among(config.allCall)},
	{"token bucket", strictpeer.Bucket, among(config.allCall)},
	{"rolling window", strictpeer.Rolling, among(config.twoCall)},
	{"rolling window", strictpeer.Rolling, among(config.oneBusy)},
	{"rolling window, one replica is 20 ms from Redis", strictpeer.Rolling, distant},
	{"rolling window", strictpeer.Rolling, aloneAll},
	{"fixed window", strictpeer.Fixed, aloneAll},
	{"rolling window", strictpeer.Rolling, aloneFew},
}

// incidents are parts in which something happens.
var incidents = []part{
	{"one 429 with `Retry-After: 2`", strictpeer.Rolling, held},
	{"the peer halves its limit", strictpeer.Rolling, halved},
	{"Redis away, `fail=closed`", strictpeer.Rolling, awayClosed},
	{"Redis away, `fail=open`", strictpeer.Rolling, awayOpen},
	{"Redis away, `fail=local`", strictpeer.Rolling, awayLocal},
}

// patience is how long replicas wait for Redis: a busy machine is no reason to send a call
// undecided.
const patience = 2 * time.Second

// jobs returns the same job for all replicas, with these callers.
func (c config) jobs(callers func(i int) int, change func(*job)) []job {
	var all []job
	for i := range c.replicas {
		j := job{Callers: callers(i), Max: int64(c.most), Window: c.window, Margin: c.margin, Fail: runtime.FailClosed, Timeout: patience}
		if change != nil {
			change(&j)
		}
		all = append(all, j)
	}
	return all
}

// isShort reports whether a part is a test, on a machine that may have other work.
func (c config) isShort() bool { return c.margin > 0 }

func (c config) allCall(int) int { return c.callers }

// twoCall has only two replicas call.
func (c config) twoCall(i int) int {
	if i < 2 {
		return c.callers
	}
	return 0
}

// oneBusy has a replica with many callers, and others with one each.
func (c config) oneBusy(i int) int {
	if i == 0 {
		return 6 * c.callers
	}
	return 1
}

func (p part) newRun(c config) *run {
	return &run{peer: &strictpeer.Peer{Max: c.most, Window: c.window, Admits: p.admits}}
}

// steadily has replicas call for a while, and says what was seen.
func (p part) steadily(t testing.TB, c config, r *run, jobs []job) finding {
	r.start(t, jobs)
	time.Sleep(c.lasts)
	r.stop()
	return p.found(r, jobs)
}

func (p part) found(r *run, jobs []job) finding {
	f := finding{part: p, steady: steady{client: "rateclient", used: r.peer.Used(r.ended), longest: r.longest(), leastServed: math.MaxInt}}
	if jobs[0].Alone {
		f.client = "x/time/rate"
	}
	served := r.served()
	for i := range jobs {
		f.callers = append(f.callers, jobs[i].Callers)
		if jobs[i].Callers > 0 {
			f.leastServed = min(f.leastServed, served[i])
			f.mostServed = max(f.mostServed, served[i])
		}
	}
	for _, a := range r.seen() {
		f.sent++
		if a.refused {
			f.refused++
		}
	}
	return f
}

// among asks replicas with these callers to keep to the limit.
func among(callers func(c config, i int) int) func(testing.TB, part, config) finding {
	return func(t testing.TB, p part, c config) finding {
		r := p.newRun(c)
		r.redis = redistest.Start(t).Addr
		jobs := c.jobs(func(i int) int { return callers(c, i) }, nil)
		return p.steadily(t, c, r, jobs).keeps(t, c)
	}
}

func distant(t testing.TB, p part, c config) finding {
	r := p.newRun(c)
	r.redis = redistest.Start(t).Addr
	proxy := faultproxy.Start(t, r.redis)
	proxy.Delay(20 * time.Millisecond)
	r.others = map[int]string{c.replicas - 1: proxy.Addr}
	return p.steadily(t, c, r, c.jobs(c.allCall, nil)).keeps(t, c)
}

// keeps wants no refusals, the limit used, and nobody to starve.
func (f finding) keeps(t testing.TB, c config) finding {
	t.Helper()
	if f.refused > 0 {
		t.Errorf("%s, callers %v: %d of %d requests were refused", f.name, f.callers, f.refused, f.sent)
	}
	least, fair := 0.98, 4
	if c.isShort() {
		least, fair = float64(c.window)/float64(c.window+c.margin)*0.7, 20
	}
	if f.used < least {
		t.Errorf("%s, callers %v: %.2f %% of the limit was used, want %.2f %%", f.name, f.callers, f.used*100, least*100)
	}
	if f.leastServed*fair < f.mostServed/max(1, slices.Max(f.callers)/slices.Min(f.callers[:2])) {
		t.Errorf("%s, callers %v: a replica was served %d times, and one %d times", f.name, f.callers, f.leastServed, f.mostServed)
	}
	return f
}

func aloneAll(t testing.TB, p part, c config) finding {
	f := p.steadily(t, c, p.newRun(c), c.jobs(c.allCall, func(j *job) { j.Alone = true }))
	if f.refused == 0 {
		t.Errorf("%s: the control was never refused: the peer is not strict", f.name)
	}
	return f
}

func aloneFew(t testing.TB, p part, c config) finding {
	f := p.steadily(t, c, p.newRun(c), c.jobs(c.twoCall, func(j *job) { j.Alone = true }))
	if f.used > 0.5 {
		t.Errorf("%s: two of the control's replicas have used %.2f %% of the limit", f.name, f.used*100)
	}
	return f
}

// held has the peer refuse one request in the midst of work.
func held(t testing.TB, p part, c config) finding {
	const hold = 2 * time.Second
	r := p.newRun(c)
	r.redis = redistest.Start(t).Addr
	jobs := c.jobs(c.allCall, nil)
	r.start(t, jobs)
	time.Sleep(c.window * 3 / 2)
	r.refuse.Store(true)
	time.Sleep(4*c.window + hold)
	r.stop()
	f := p.found(r, jobs)
	seen := r.seen()
	i := slices.IndexFunc(seen, func(a arrival) bool { return a.refused })
	if i < 0 || f.refused != 1 {
		t.Errorf("%s: %d requests were refused, want 1", p.name, f.refused)
		return f
	}
	answered := seen[i].answer
	var straggler time.Duration // the last that was sent before it was known
	early, inversions, last := 0, 0, map[int]arrival{}
	parts := make([]int, 30) // tenths of the three windows after the hold
	for _, a := range seen {
		after := a.sent.Sub(answered)
		switch {
		case after <= 0:
		case after < hold/2:
			straggler = max(straggler, after)
		case after < hold:
			early++
		default:
			if n := int((after - hold) * 10 / c.window); n < len(parts) {
				parts[n]++
			}
			before, ok := last[a.replica]
			if ok && before.call > a.call && a.sent.Sub(before.sent) > 100*time.Millisecond {
				inversions++
			}
			last[a.replica] = a
		}
	}
	least, most := slices.Min(parts[10:]), slices.Max(parts)
	f.seen = fmt.Sprintf("the last request that was sent before it was known: %d ms after the answer. Then none for 2 s. "+
		"Of the three windows after that no tenth had more than %d requests, and of the last two none less than %d, of %d in a window. %d requests were sent out of order",
		straggler.Milliseconds(), most, least, c.most, inversions)
	if early > 0 || straggler > 100*time.Millisecond && !c.isShort() {
		t.Errorf("%s: %d requests were sent in the second before the hold was over, and one %v after it was told", p.name, early, straggler)
	}
	herd := 20 // percent of a window's in a tenth
	if c.isShort() {
		least, herd = c.most, 50
	}
	if most > c.most*herd/100 || least < c.most*4/100 {
		t.Errorf("%s: the tenths of windows after the hold have %v requests", p.name, parts)
	}
	// A call has its number a moment before it is in line, which is long on a busy machine.
	if inversions > 0 && !c.isShort() {
		t.Errorf("%s: %d requests were sent out of order", p.name, inversions)
	}
	return f
}

// halved has the peer admit only half as much, which it tells.
func halved(t testing.TB, p part, c config) finding {
	r := p.newRun(c)
	r.redis, r.announces = redistest.Start(t).Addr, true
	c.callers = 1 // more of a replica may be under way at that moment
	jobs := c.jobs(c.allCall, func(j *job) { j.Least = 1 })
	r.start(t, jobs)
	time.Sleep(c.window * 3 / 2)
	half := time.Now()
	r.peer.SetMax(c.most / 2)
	time.Sleep(4 * c.window)
	r.stop()
	f := p.found(r, jobs)
	refused, after := make([]int, c.replicas), 0
	for _, a := range r.seen() {
		if a.refused {
			refused[a.replica]++
		} else if a.arrived.After(half.Add(2 * c.window)) {
			after++
		}
	}
	f.seen = fmt.Sprintf("replicas were refused %v times. In the third and fourth window after that %d requests were served, of %d", refused, after, c.most)
	if slices.Max(refused) > 1 {
		t.Errorf("%s: replicas were refused %v times", p.name, refused)
	}
	if after < c.most*7/10 {
		t.Errorf("%s: in the third and fourth window after that %d requests were served, of %d", p.name, after, c.most)
	}
	return f
}
