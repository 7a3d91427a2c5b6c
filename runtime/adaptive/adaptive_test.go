package adaptive_test

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/leaks"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/adaptive"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/wrapper"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// A machine is what a test makes of the readings.
type machine struct{ cpu, memory atomic.Uint64 }

func newMachine(cpu, memory float64) *machine {
	m := new(machine)
	m.set(cpu, memory)
	return m
}

func (m *machine) set(cpu, memory float64) {
	m.cpu.Store(math.Float64bits(cpu))
	m.memory.Store(math.Float64bits(memory))
}

func (m *machine) readings() adaptive.Option {
	return adaptive.Readings(
		func() (float64, error) { return math.Float64frombits(m.cpu.Load()), nil },
		func() (float64, error) { return math.Float64frombits(m.memory.Load()), nil },
	)
}

// A driver has a call a second go through a limiter, by a rule that adapts.
type driver struct {
	*testing.T
	limiter *runtime.Limiter
	rule    *runtime.Rule
	changes []float64
}

func drive(t *testing.T, opts ...adaptive.Option) *driver {
	d := &driver{T: t, rule: &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Second, Max: 100, Adaptive: adaptive.To(opts...)}}
	d.limiter = runtime.New(runtime.NewMemoryStore(),
		runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithObserver(&observe.Observer{Scale: func(e observe.ScaleEvent) { d.changes = append(d.changes, e.Factor) }}))
	t.Cleanup(func() { d.limiter.Close() })
	return d
}

// run returns the factor after so many seconds in which each call took so long.
func (d *driver) run(seconds int, took time.Duration) float64 {
	d.Helper()
	for range seconds {
		if _, err := d.limiter.Take(d.Context(), d.rule.Limit(nil)); err != nil {
			d.Fatal(err)
		}
		synctest.Wait() // what the call has begun reads the seconds before
		for range 100 {
			wrapper.Measure(d.limiter, d.rule, time.Now().Add(-took))
		}
		synctest.Wait()
		time.Sleep(time.Second)
	}
	return bridge.LimiterOf(d.limiter).Factor(d.rule)
}

func bubble(t *testing.T, test func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, test)
}

// TestFactors is what becomes of a reading that stays.
func TestFactors(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	both := []adaptive.Option{adaptive.CPU, adaptive.Memory}
	for name, test := range map[string]struct {
		cpu, memory float64
		took        time.Duration
		opts        []adaptive.Option
		want        float64
	}{
		"idle":                    {0, 0, 0, both, 1.5},
		"half idle":               {0.3, 0.7, 0, both, 1.25},
		"idle together":           {0.3, 0.36, 0, both, 1.5},
		"neither":                 {0.65, 0.7, 0, both, 1},
		"at the lower edges":      {0.5, 0.6, 0, both, 1},
		"at the upper edges":      {0.8, 0.85, 0, both, 1},
		"busy":                    {0.875, 0.7, 0, both, 0.75},
		"full":                    {1, 0.7, 0, both, 0.5},
		"busy together":           {0.86, 0.895, 0, both, 0.64}, // 0.8 * 0.8
		"full together":           {1, 1, 0, both, 0.5},
		"idle, but out of memory": {0, 1, 0, both, 0.5},
		"one signal of two":       {0, 1, 0, []adaptive.Option{adaptive.CPU}, 1.5},
		"no signal":               {0, 1, 0, nil, 1},
		"above what can be":       {17, math.Inf(1), 0, both, 0.5},
		"below what can be":       {-17, -1, 0, both, 1.5},
		"not a number":            {math.NaN(), 1, 0, both, 0.5},
		"band":                    {1, 0, 0, append(both, adaptive.Band(0.2, 3)), 0.2},
		"band, idle":              {0, 0, 0, append(both, adaptive.Band(0.2, 3)), 3},
		"no band":                 {1, 0, 0, append(both, adaptive.Band(1, 1)), 1},
		"thresholds":              {0.9, 0.3, 0, append(both, adaptive.Thresholds(adaptive.CPU, 0.9, 0.95), adaptive.Thresholds(adaptive.Memory, 0, 0.2)), 0.92},
		"silly thresholds":        {0.995, 0, 0, append(both, adaptive.Thresholds(adaptive.CPU, 9, 7)), 0.67},
		"target met":              {0, 0, 70 * ms, []adaptive.Option{adaptive.Latency, adaptive.Target(100 * ms)}, 1},
		"target far off":          {0, 0, 30 * ms, []adaptive.Option{adaptive.Latency, adaptive.Target(100 * ms)}, 1.25},
		"target missed":           {0, 0, 150 * ms, []adaptive.Option{adaptive.Latency, adaptive.Target(100 * ms)}, 0.75},
		"target missed by far":    {0, 0, 900 * ms, []adaptive.Option{adaptive.Latency, adaptive.Target(100 * ms)}, 0.5},
		"target and thresholds":   {0, 0, 300 * ms, []adaptive.Option{adaptive.Latency, adaptive.Thresholds(adaptive.Latency, 1, 2), adaptive.Target(100 * ms)}, 0.75},
		"usual is usual":          {0, 0, 900 * ms, []adaptive.Option{adaptive.Latency}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := newMachine(test.cpu, test.memory)
				d := drive(t, append(test.opts, m.readings())...)
				if got := d.run(60, test.took); math.Abs(got-test.want) > 0.0751 || len(d.changes) > 1 {
					t.Errorf("factor %v after %v, want %v", got, d.changes, test.want)
				}
			})
		})
	}
}

// TestRiseAndFall follows a machine that becomes busy and idle again.
func TestRiseAndFall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(0, 0.7)
		d := drive(t, adaptive.CPU, adaptive.Memory, m.readings())
		if f := d.run(8, 0); f != 1 {
			t.Errorf("%v in the first seconds", f)
		}
		if f := d.run(10, 0); f != 1.5 {
			t.Errorf("idle: %v", f)
		}
		m.set(1, 0.7)
		if f := d.run(2, 0); f <= 1 {
			t.Errorf("%v at once", f)
		}
		if f := d.run(16, 0); f < 0.55 || f >= 1 {
			t.Errorf("under load for 18 seconds: %v", f)
		}
		if f := d.run(20, 0); f != 0.5 {
			t.Errorf("under load: %v", f)
		}
		for i, f := range d.changes[1:] {
			if f >= d.changes[i] {
				t.Errorf("up and down on the way down: %v", d.changes)
			}
		}
		m.set(0.65, 0.7)
		if f := d.run(30, 0); f != 1 {
			t.Errorf("normal: %v", f)
		}
		time.Sleep(time.Hour) // without a call
		m.set(0, 0)
		if f := d.run(30, 0); f != 1.5 {
			t.Errorf("idle again: %v", f)
		}
	})
}

// TestLatency has a method slow down and become itself again.
func TestLatency(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := drive(t, adaptive.Latency)
		const usual = 20 * time.Millisecond
		for _, step := range []struct {
			seconds   int
			took      time.Duration
			low, high float64
		}{
			{600, usual, 1, 1},
			{60, usual * 3 / 2, 1, 1},
			{60, usual * 3, 0.7, 0.85},
			{3600, usual * 6, 0.5, 0.65}, // is not usual after an hour
			{60, usual, 1, 1.1},
			{60, usual / 2, 1.05, 1.3},
		} {
			if f := d.run(step.seconds, step.took); f < step.low || f > step.high {
				t.Errorf("%v long %v a call: factor %v", step.seconds, step.took, f)
			}
		}
	})
}

// TestNoise has readings tremble, at the edge of every step, and wants the
// factor to stand still.
func TestNoise(t *testing.T) {
	t.Parallel()
	for centre := 0.0; centre <= 1; centre += 1.0 / 128 {
		synctest.Test(t, func(t *testing.T) {
			m, random := newMachine(centre, 0.7), rand.New(rand.NewPCG(1, 2))
			d := drive(t, adaptive.CPU, m.readings())
			d.run(60, 0)
			d.changes = nil
			for range 300 {
				m.set(centre+random.Float64()*0.04-0.02, 0.7)
				d.run(1, 0)
			}
			if len(d.changes) > 1 {
				t.Errorf("around %v: %v", centre, d.changes)
			}
		})
	}
}
