package rateclient_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/strictpeer"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/rategen/rategen/runtime/rawstore"
)

const (
	// wayMost is the longest way to the random peer and back, each.
	wayMost = 50 * time.Millisecond
	// lagMost is how much earlier a request that arrives was charged at most: the store's reply
	// was on its way, and then the request.
	lagMost = storeMost + wayMost
	holdMax = 40 * time.Second
)

// A randomPeer is a peer that says, or does, something random beside counting, and the judge of
// what arrives.
type randomPeer struct {
	strictpeer.Peer
	r      *rand.Rand
	honest bool // refuses by its count alone, and says so
	tells  bool // also what remains

	mu       sync.Mutex
	arrivals []time.Time
	holds    []hold
	lost     []hold // when what was charged that the store has forgotten, at the end
	refused  int
}

// A hold is what an answer asked for that has arrived at from.
type hold struct{ from, to time.Time }

// lie returns a status and fields that mean nothing, or something else than what is.
func (p *randomPeer) lie() (int, map[string]string) {
	value := func() string {
		return []string{"0", "1", "-1", "x", "99999999999999999999", "1e9", "3600", "5", "Thu, 01 Jan 1970 00:00:00 GMT", ""}[p.r.IntN(10)]
	}
	status := []int{200, 200, 403, 418, 429, 429, 500, 503}[p.r.IntN(8)]
	fields := map[string]string{}
	for _, name := range []string{"Retry-After", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Date", "Age"} {
		if p.r.IntN(3) == 0 {
			fields[name] = value()
		}
	}
	if p.r.IntN(3) == 0 {
		fields["RateLimit-Policy"] = fmt.Sprintf(`"a";q=%s;w=%s`, value(), value())
		fields["RateLimit"] = fmt.Sprintf(`"a";r=%s;t=%s`, value(), value())
	}
	return status, fields
}

// truth returns what a peer answers that goes by its count.
func (p *randomPeer) truth(at time.Time, ok bool) (int, map[string]string) {
	most, wait := p.Limit()
	status, fields := 200, map[string]string{}
	if !ok {
		status = 429
		fields["Retry-After"] = fmt.Sprint(max(1, int(wait.Seconds()+0.999)))
	}
	if p.tells {
		fields["RateLimit-Policy"] = fmt.Sprintf(`"a";q=%d;w=%d`, most, int(p.Window.Seconds()))
		fields["RateLimit"] = fmt.Sprintf(`"a";r=%d;t=%d`, p.Left(at), int(p.Window.Seconds()))
	}
	return status, fields
}

func (p *randomPeer) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	there, back, lies := rand.N(wayMost), rand.N(wayMost), !p.honest && p.r.IntN(3) == 0
	stalls := lies && p.r.IntN(20) == 0
	p.mu.Unlock()
	time.Sleep(there)
	at, ok := p.Arrive()
	p.mu.Lock()
	p.arrivals = append(p.arrivals, at)
	status, fields := p.truth(at, ok)
	if lies {
		status, fields = p.lie()
	}
	p.mu.Unlock()
	time.Sleep(back)
	if stalls {
		time.Sleep(5 * time.Second)
		if there%2 == 0 {
			return nil, errors.New("the connection is lost")
		}
	}
	header := http.Header{}
	for name, value := range fields {
		header.Set(name, value)
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := rateclient.ReadAnswer(status, header, now); a.Refused {
		p.refused++
		if a.HoldOff > 0 {
			p.holds = append(p.holds, hold{now, now.Add(min(a.HoldOff, holdMax))})
		}
	}
	return &http.Response{StatusCode: status, Header: header, Body: http.NoBody, Request: r}, nil
}

// lose notes that the store forgets what was stored from then on: the holds that were in force are
// over, and the charges do not count.
func (p *randomPeer) lose(since time.Time, charges bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for i := range p.holds {
		if h := &p.holds[i]; h.to.After(now) && !h.from.Before(since) {
			h.to = now
		}
	}
	if charges {
		p.lost = append(p.lost, hold{since, now})
	}
}

// forgotten reports whether what has arrived was perhaps not known any more when something else
// arrived.
func (p *randomPeer) forgotten(at, later time.Time) bool {
	return slices.ContainsFunc(p.lost, func(l hold) bool {
		return !at.Before(l.from) && !at.After(l.to.Add(lagMost)) && !later.Before(l.to)
	})
}

// judge returns what was wrong with what has arrived: more than the limit in a window, or what was
// charged while an answer held it back.
func (p *randomPeer) judge(most int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortFunc(p.arrivals, time.Time.Compare)
	for i, to := range p.arrivals {
		n := 0
		for j := i; j >= 0 && to.Sub(p.arrivals[j]) < p.Window-lagMost; j-- {
			if !p.forgotten(p.arrivals[j], to) {
				n++
			}
		}
		if n > most {
			return fmt.Sprintf("%d requests within a window before %v", n, to)
		}
	}
	for _, h := range p.holds {
		for _, at := range p.arrivals {
			if at.After(h.from.Add(lagMost)) && at.Before(h.to) {
				return fmt.Sprintf("a request arrived %v after a hold began, which is for %v", at.Sub(h.from), h.to.Sub(h.from))
			}
		}
	}
	return ""
}

// TestRandomPeers has some processes send to a random peer, while operators release its key, and
// the store forgets it, or the last moments in a failover. The peer judges: no answer has more than the limit sent, or anything sent while it
// holds calls back. One that is honest refuses nothing, and nearly all of its limit is used; after
// all others the next requests are served when it is honest again.
func TestRandomPeers(t *testing.T) {
	for range effort.Choose(24, 600) {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { randomPeers(t, seed) }) })
		if t.Failed() {
			return
		}
	}
}

func randomPeers(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	most, window := []int{1, 7, 40, 100}[r.IntN(4)], []time.Duration{2, 10, 30}[r.IntN(3)]*time.Second
	admits := r.IntN(3)
	p := &randomPeer{r: rand.New(rand.NewPCG(seed, 1)), honest: r.IntN(2) == 0, tells: r.IntN(2) == 0,
		Peer: strictpeer.Peer{Max: most, Window: window, Admits: []strictpeer.Count{strictpeer.Rolling, strictpeer.Fixed, strictpeer.Bucket}[admits]}}
	limit := rateclient.PeerLimit{Rule: runtime.Rule{Name: "peer", Window: window, Max: int64(most)}}
	if window < 10*time.Second { // a 64th of it is less than ways differ
		limit.Margin = 2 * wayMost
	}
	if r.IntN(3) == 0 {
		limit.Least, limit.Most = 1, int64(most)
	}
	costs := r.IntN(4) == 0
	if costs {
		limit.Cost = func(*http.Request) int64 { return 1 + rand.Int64N(min(3, int64(most))) }
	}
	first := runtime.NewMemoryStore(runtime.WithClock(time.Now)) // has what peers have said
	servers := &pair{master: rawstore.Wrap(first).Store, replica: rawstore.Wrap(runtime.NewMemoryStore(runtime.WithClock(time.Now))).Store}
	store := rawstore.New(pairStore{servers.master, servers}, first)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	quiet, callers := slog.New(slog.DiscardHandler), 0
	for range 1 + r.IntN(4) {
		limiter := runtime.New(store, runtime.WithLogger(quiet))
		defer limiter.Close()
		transport, err := rateclient.New(limiter, []rateclient.Peer{{
			Pattern: "a.test/", Limits: []rateclient.PeerLimit{limit}, Wait: time.Hour, MaxHold: holdMax, Retries: r.IntN(2),
		}}, rateclient.WithNext(p), rateclient.WithLogger(quiet))
		if err != nil {
			t.Fatal(err)
		}
		n := 1 + r.IntN(6)
		callers += n
		ask(ctx, &wg, n, transport)
	}
	operator := runtime.New(store, runtime.WithLogger(quiet))
	defer operator.Close()
	key := limit.Rule
	key.Hold, key.Outgoing = true, true
	began := time.Now()
	for range 20 {
		time.Sleep(rand.N(window))
		if p.honest {
			continue
		}
		switch r.IntN(6) {
		case 0:
			if err := operator.Release(ctx, key.Limit(nil)); err != nil {
				t.Error(err)
			}
			p.lose(time.Time{}, false)
		case 1:
			if err := operator.Reset(ctx, key.Limit(nil)); err != nil {
				t.Error(err)
			}
			p.lose(time.Time{}, true)
		case 2:
			p.SetMax(1 + r.IntN(most))
		case 3:
			if servers.cut {
				continue // there is no other replica
			}
			since := time.Now()
			servers.cutOff()
			time.Sleep(rand.N(time.Second))
			servers.takeOver()
			p.lose(since, true)
		}
	}
	end := time.Now()
	if wrong := p.judge(most); wrong != "" {
		t.Errorf("%+v: %s", limit.Rule, wrong)
	}
	used := p.Used(end)
	if p.honest {
		if p.refused > 0 {
			t.Errorf("an honest peer has refused %d requests", p.refused)
		}
		want := float64(callers) * window.Seconds() / (wayMost + 5*time.Millisecond).Seconds()
		if !costs && end.Sub(began) > 3*window && want > 1.5*float64(most) && used < 0.9 {
			t.Errorf("%.0f %% of the limit was used", used*100)
		}
	}
	p.mu.Lock()
	p.honest = true
	served := len(p.arrivals)
	p.mu.Unlock()
	p.SetMax(most)
	time.Sleep(holdMax + 5*window + 5*time.Second)
	p.mu.Lock()
	more := len(p.arrivals) - served
	p.mu.Unlock()
	if more == 0 {
		t.Error("nothing was sent any more")
	}
	cancel()
	wg.Wait()
}
