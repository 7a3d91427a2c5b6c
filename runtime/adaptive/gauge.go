package adaptive

import (
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"
)

const (
	// readEvery is the least time between two readings.
	readEvery = time.Second
	// smoothing is the time in which the average of a reading goes most of the
	// way, 1-1/e, to where the reading is.
	smoothing = 8 * time.Second
)

// readings are shared by all scalers of the process.
var readings = [signals]*gauge{
	CPU:    {name: "cpu", read: new(cpuMeter).read},
	Memory: {name: "memory", read: new(memoryMeter).read},
}

// errNotYet is returned by a reading that needs another one to compare with.
var errNotYet = errors.New("not yet")

// A gauge averages a reading from 0 to 1 that is taken when somebody asks.
type gauge struct {
	name string
	read func() (float64, error)

	mu     sync.Mutex
	began  time.Time // zero: there is no reading
	looked time.Time
	value  float64
	warned bool
}

// load returns the average. It is not known while there are no readings and in
// the first seconds of them, when a program that starts is busy with that.
func (g *gauge) load() (value float64, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); now.Sub(g.looked) >= readEvery {
		g.look(now)
	}
	return g.value, !g.began.IsZero() && g.looked.Sub(g.began) >= smoothing
}

// look takes a reading.
func (g *gauge) look(now time.Time) {
	passed := now.Sub(g.looked)
	g.looked = now
	x, err := g.read()
	switch {
	case errors.Is(err, errNotYet):
	case err != nil || math.IsNaN(x):
		g.began = time.Time{}
		if !g.warned {
			slog.Warn("rate limits do not adapt to a reading that fails", "reading", g.name, "error", err)
		}
		g.warned = true
	case g.began.IsZero():
		g.began, g.value = now, clamp(0, x, 1)
	default:
		g.value -= math.Expm1(-float64(passed)/float64(smoothing)) * (clamp(0, x, 1) - g.value)
	}
}
