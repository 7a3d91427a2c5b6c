package runtime

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// breakAfter is how many calls in a row must find no Redis before it is
	// left alone: one slow answer is no outage.
	breakAfter = 5
	// probeEvery is the time between calls that look whether Redis is back,
	// give or take a quarter so that processes do not all look at once.
	probeEvery = 200 * time.Millisecond
)

var errBroken = errors.New("redis gave no answer lately, and was not asked")

// A breaker keeps calls from waiting for a Redis that is not there. After
// breakAfter failures in a row it is open: calls fail at once, but for a probe
// every probeEvery, which goes through. One probe is under way at a time, but
// is given up on after the breaker's patience. Its success closes the breaker.
//
// What becomes of a call counts only as long as the breaker is as it was when
// the call was admitted: what comes later says nothing about Redis as it is
// now.
type breaker struct {
	patience time.Duration // how long a probe may take
	changed  func(open bool)

	// state counts up by one when the breaker opens or closes, and by two with
	// each probe: it is odd while the breaker is open.
	state    atomic.Uint64
	failures atomic.Int64
	probeAt  atomic.Int64 // instant from which the next probe may go, while open

	mu   sync.Mutex // held to change the state
	next int64      // instant from which the next probe may go if this one has ended
}

// newBreaker returns a closed breaker. It calls changed when it opens or closes,
// if that is not nil, which may be from several goroutines at a time.
func newBreaker(patience time.Duration, changed func(open bool)) *breaker {
	return &breaker{patience: patience, changed: changed}
}

// open reports whether the breaker is open.
func (b *breaker) open() bool { return b.state.Load()%2 == 1 }

// A pass is the state of a breaker when it admitted a call.
type pass uint64

// probe reports whether the call looks whether Redis is back.
func (p pass) probe() bool { return p%2 == 1 }

// admit reports whether a call may go to Redis. If so it must be told what
// became of it, by way of succeeded, failed or dropped.
func (b *breaker) admit() (pass, bool) {
	state := b.state.Load()
	if state%2 == 0 {
		return pass(state), true
	}
	now := int64(instant())
	if now < b.probeAt.Load() {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if state = b.state.Load(); state%2 == 0 {
		return pass(state), true
	}
	if now < b.probeAt.Load() {
		return 0, false
	}
	b.next = now + interval()
	b.probeAt.Store(b.next + int64(b.patience))
	return pass(b.state.Add(2)), true
}

// succeeded says that Redis has answered a call, if only with an error.
func (b *breaker) succeeded(p pass) {
	if !p.probe() && b.failures.Load() == 0 {
		return
	}
	if b.judge(p, true) && b.changed != nil {
		b.changed(false)
	}
}

// failed says that Redis has not answered a call.
func (b *breaker) failed(p pass) {
	if !p.probe() && (pass(b.state.Load()) != p || b.failures.Add(1) < breakAfter) {
		return
	}
	if b.judge(p, false) && b.changed != nil {
		b.changed(true)
	}
}

// learn says what came of asking Redis, for as long as it might take. An error
// that Redis replied is an answer, unless it is that it could not do it now.
func (b *breaker) learn(p pass, err error) {
	var reply redis.Error
	if err == nil || errors.As(err, &reply) && !notExecuted(err) {
		b.succeeded(p)
	} else {
		b.failed(p)
	}
}

// dropped says that the caller gave up, which is no failure of Redis's. After
// a probe another may go, unless this one is answered all the same.
func (b *breaker) dropped(p pass) {
	if !p.probe() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if pass(b.state.Load()) == p {
		b.probeAt.Store(b.next)
	}
}

// judge takes a result into account and reports whether it has opened or
// closed the breaker.
func (b *breaker) judge(p pass, answered bool) (turned bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if pass(b.state.Load()) != p {
		return false
	}
	switch {
	case answered:
		b.failures.Store(0)
		turned = p.probe()
	case p.probe():
		b.state.Add(2) // should the answer still come, it comes too late
		b.probeAt.Store(b.next)
	default:
		b.probeAt.Store(int64(instant()) + interval())
		turned = true
	}
	if turned {
		b.state.Add(1)
	}
	return turned
}

func interval() int64 {
	return int64(probeEvery*3/4) + rand.Int64N(int64(probeEvery/2))
}
