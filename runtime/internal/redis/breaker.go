package redis

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/private"
)

const (
	// minFailures is how many batches must fail in a row.
	minFailures = 3
	// minSilence is the shortest silence that opens the breaker.
	minSilence = 200 * time.Millisecond
	// probeInterval is the time between probes, give or take a quarter so that
	// processes do not all probe at once.
	probeInterval = 200 * time.Millisecond
)

// ErrOpen is the error of a call that the breaker refused.
var ErrOpen = private.New("circuit breaker open: redis has not responded lately")

// A breaker is a circuit breaker for one server. Evidence counts only as long as
// the breaker is in the state in which it let the call pass: later evidence
// says nothing about Redis as it is now. It is safe for concurrent use.
type breaker struct {
	router  *Router // is told when it opens or closes
	node    string
	timeout time.Duration
	silence time.Duration

	// state counts up by one when the breaker opens or closes, and by two with
	// each probe: it is odd while the breaker is open.
	state   atomic.Uint64
	failing atomic.Int64 // when the first batch of a row of failed ones was sent; 0: none has failed
	probeAt atomic.Int64 // from when on the next probe may pass, while open

	mu       sync.Mutex // guards changes of the state, and what follows
	retired  bool       // it stays closed
	failures int        // in a row
	lateAt   int64      // when the last late answer came
	next     int64      // from when on the next probe may pass if this one has ended
}

func newBreaker(r *Router, node string) *breaker {
	return &breaker{router: r, node: node, timeout: r.cfg.Timeout, silence: max(minSilence, r.cfg.Timeout)}
}

func (b *breaker) Open() bool { return b.state.Load()%2 == 1 }

// A permission is the state of a breaker when it let a call pass.
type permission uint64

func (p permission) Probe() bool { return p%2 == 1 }

// Allow reports whether a call that arrived at an instant may go to Redis. If so
// the breaker must learn the outcome, by Success, Failure or Cancel.
func (b *breaker) Allow(now time.Duration) (permission, bool) {
	if b.failing.Load() != 0 {
		b.Check(now)
	}
	state := b.state.Load()
	if state%2 == 0 {
		return permission(state), true
	}
	if int64(now) < b.probeAt.Load() {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if state = b.state.Load(); state%2 == 0 {
		return permission(state), true
	}
	if int64(now) < b.probeAt.Load() {
		return 0, false
	}
	b.next = int64(now) + interval()
	b.probeAt.Store(b.next + int64(b.timeout))
	return permission(b.state.Add(2)), true
}

// Success says that Redis has answered in time, if only with an error.
func (b *breaker) Success(p permission) {
	if !p.Probe() && b.failing.Load() == 0 {
		return
	}
	if b.succeed(p) {
		b.router.breakerChanged(b.node, false)
	}
}

func (b *breaker) succeed(p permission) (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if permission(b.state.Load()) != p {
		return false
	}
	b.failing.Store(0)
	b.failures = 0
	if p.Probe() {
		b.state.Add(1)
	}
	return p.Probe()
}

// Failure says that a batch which was sent at an instant got no answer in time.
func (b *breaker) Failure(p permission, sent time.Duration) {
	b.mu.Lock()
	switch {
	case permission(b.state.Load()) != p:
	case p.Probe():
		b.state.Add(2) // should the answer still come, it comes too late
		b.probeAt.Store(b.next)
	default:
		b.failures++
		if b.failures == 1 {
			b.lateAt = 0
		}
		first := b.failing.Load()
		if first == 0 || int64(sent) < first {
			b.failing.Store(int64(sent))
		}
	}
	b.mu.Unlock()
	b.Check(clock.Now())
}

// Late says that the answer to a batch came after it had failed.
func (b *breaker) Late(p permission) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if permission(b.state.Load()) == p && !p.Probe() {
		b.lateAt = int64(clock.Now())
	}
}

// Cancel says that nothing can be said: the call never reached Redis. After a
// probe another may pass.
func (b *breaker) Cancel(p permission) {
	if !p.Probe() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if permission(b.state.Load()) == p {
		b.probeAt.Store(b.next)
	}
}

// Retire says that the server has nothing to decide any more: the breaker closes, and
// stays closed.
func (b *breaker) Retire() {
	b.mu.Lock()
	closed := b.Open()
	b.retired = true
	b.failing.Store(0)
	if closed {
		b.state.Add(1)
	}
	b.mu.Unlock()
	if closed {
		b.router.breakerChanged(b.node, false)
	}
}

// Check opens the breaker if Redis has been silent for too long.
func (b *breaker) Check(now time.Duration) {
	if b.open(int64(now)) {
		b.router.breakerChanged(b.node, true)
	}
}

func (b *breaker) open(now int64) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.failing.Load()
	if b.retired || b.state.Load()%2 == 1 || first == 0 || b.failures < minFailures {
		return false
	}
	silence := int64(b.silence)
	if b.lateAt > 0 {
		silence *= 2
	}
	if now-first < silence {
		return false
	}
	b.failing.Store(0)
	b.failures = 0
	b.probeAt.Store(now + interval())
	b.state.Add(1)
	return true
}

func interval() int64 {
	return int64(probeInterval*3/4) + rand.Int64N(int64(probeInterval/2))
}
