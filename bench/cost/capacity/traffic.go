package main

import (
	"math/rand/v2"
	"time"
)

// traffic is the calls that all processes make together: independent of each other,
// at random times and to random keys, of which few are hot.
type traffic struct {
	Keys  int
	Zipf  float64
	Rate  float64 // calls a second
	For   time.Duration
	Burst float64 // the rate's factor in the middle tenth of the time
}

// calls generates the calls of a share of the processes.
type calls struct {
	traffic
	random *rand.Rand
	zipf   *rand.Zipf
	share  float64 // of the rate
	now    time.Duration
}

func (t traffic) calls(random *rand.Rand, share float64) *calls {
	return &calls{traffic: t, random: random, zipf: rand.NewZipf(random, t.Zipf, 1, uint64(t.Keys-1)), share: share}
}

// next returns when the next call comes, and the key that it is to. It returns false
// when the time is over.
func (c *calls) next() (at time.Duration, key int, ok bool) {
	rate := c.Rate * c.share
	if middle := c.For * 9 / 20; c.now >= middle && c.now < middle+c.For/10 {
		rate *= c.Burst
	}
	c.now += time.Duration(c.random.ExpFloat64() / rate * float64(time.Second))
	return c.now, int(c.zipf.Uint64()), c.now < c.For
}
