package runtime

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"
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
// breakAfter failures in a row it is open: calls fail at once, but for one in
// every probeEvery, which goes through. The first success closes it.
type breaker struct {
	start    time.Time // what times are counted from
	failures atomic.Int64
	probeAt  atomic.Int64 // when the next call may go through; 0: closed
}

// admit reports whether a call may go to Redis.
func (b *breaker) admit() bool {
	at := b.probeAt.Load()
	if at == 0 {
		return true
	}
	now := int64(time.Since(b.start))
	return now >= at && b.probeAt.CompareAndSwap(at, now+interval())
}

// succeeded says that Redis has answered, if only with an error.
func (b *breaker) succeeded() {
	if b.failures.Load() != 0 {
		b.failures.Store(0)
		b.probeAt.Store(0)
	}
}

// failed says that Redis has not answered. A call that its own caller gave up
// on says nothing about Redis.
func (b *breaker) failed() {
	if b.failures.Add(1) >= breakAfter && b.probeAt.Load() == 0 {
		b.probeAt.CompareAndSwap(0, int64(time.Since(b.start))+interval())
	}
}

func interval() int64 {
	return int64(probeEvery*3/4) + rand.Int64N(int64(probeEvery/2))
}
