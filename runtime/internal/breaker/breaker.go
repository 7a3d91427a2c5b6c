// Package breaker keeps calls from waiting for a Redis that is not there.
//
// A batch of calls is one piece of evidence, however many callers wait for it.
// A batch succeeds when its answer comes within the timeout, and fails when it
// does not or when the connection breaks. The breaker opens when at least three
// batches in a row have failed and Redis has been silent for 200 ms, or for the
// timeout if that is longer; silence begins when the first of them was sent. Answers that come too late double that time: a Redis that is far away
// may just be making connections. So no stall shorter than that opens the
// breaker, and a Redis that is frozen does, whatever the deadlines of callers
// are.
//
// While the breaker is open one call every 200 ms, give or take a quarter,
// passes as a probe. Its success closes the breaker.
package breaker

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

// A Breaker is a circuit breaker for one server. Evidence counts only as long as
// the breaker is in the state in which it let the call pass: later evidence
// says nothing about Redis as it is now. It is safe for concurrent use.
type Breaker struct {
	timeout time.Duration
	silence time.Duration
	changed func(open bool)

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

// New returns a closed breaker for batches with a timeout. It calls changed, if
// that is not nil, when it opens or closes, perhaps from several goroutines at a
// time.
func New(timeout time.Duration, changed func(open bool)) *Breaker {
	return &Breaker{timeout: timeout, silence: max(minSilence, timeout), changed: changed}
}

// Open reports whether the breaker is open.
func (b *Breaker) Open() bool { return b.state.Load()%2 == 1 }

// A Permission is the state of a breaker when it let a call pass.
type Permission uint64

// Probe reports whether the call is a probe.
func (p Permission) Probe() bool { return p%2 == 1 }

// Allow reports whether a call that arrived at an instant may go to Redis. If so
// the breaker must learn the outcome, by Success, Failure or Cancel.
func (b *Breaker) Allow(now time.Duration) (Permission, bool) {
	if b.failing.Load() != 0 {
		b.Check(now)
	}
	state := b.state.Load()
	if state%2 == 0 {
		return Permission(state), true
	}
	if int64(now) < b.probeAt.Load() {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if state = b.state.Load(); state%2 == 0 {
		return Permission(state), true
	}
	if int64(now) < b.probeAt.Load() {
		return 0, false
	}
	b.next = int64(now) + interval()
	b.probeAt.Store(b.next + int64(b.timeout))
	return Permission(b.state.Add(2)), true
}

// Success says that Redis has answered in time, if only with an error.
func (b *Breaker) Success(p Permission) {
	if !p.Probe() && b.failing.Load() == 0 {
		return
	}
	if b.succeed(p) && b.changed != nil {
		b.changed(false)
	}
}

func (b *Breaker) succeed(p Permission) (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if Permission(b.state.Load()) != p {
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
func (b *Breaker) Failure(p Permission, sent time.Duration) {
	b.mu.Lock()
	switch {
	case Permission(b.state.Load()) != p:
	case p.Probe():
		b.state.Add(2) // should the answer still come, it comes too late
		b.probeAt.Store(b.next)
	default:
		if b.failures++; b.failures == 1 {
			b.lateAt = 0
		}
		if first := b.failing.Load(); first == 0 || int64(sent) < first {
			b.failing.Store(int64(sent))
		}
	}
	b.mu.Unlock()
	b.Check(clock.Now())
}

// Late says that the answer to a batch came after it had failed.
func (b *Breaker) Late(p Permission) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if Permission(b.state.Load()) == p && !p.Probe() {
		b.lateAt = int64(clock.Now())
	}
}

// Cancel says that nothing can be said: the call never reached Redis. After a
// probe another may pass.
func (b *Breaker) Cancel(p Permission) {
	if !p.Probe() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if Permission(b.state.Load()) == p {
		b.probeAt.Store(b.next)
	}
}

// Retire says that the server has nothing to decide any more: the breaker closes, and
// stays closed.
func (b *Breaker) Retire() {
	b.mu.Lock()
	closed := b.Open()
	b.retired = true
	b.failing.Store(0)
	if closed {
		b.state.Add(1)
	}
	b.mu.Unlock()
	if closed && b.changed != nil {
		b.changed(false)
	}
}

// Check opens the breaker if Redis has been silent for too long.
func (b *Breaker) Check(now time.Duration) {
	if b.open(int64(now)) && b.changed != nil {
		b.changed(true)
	}
}

func (b *Breaker) open(now int64) (opened bool) {
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
