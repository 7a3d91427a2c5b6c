package crossing

import (
	"time"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// drawCap draws a limit of all calls of a process.
func (s *scope) drawCap(t *rapid.T) *runtime.Rule {
	r := &runtime.Rule{
		Name: "cap", Window: s.window, Max: rapid.Int64Range(1, 12).Draw(t, "cap's max"),
		Algorithm: rapid.SampledFrom([]runtime.Algorithm{runtime.SlidingLog, runtime.SlidingLog, runtime.SlidingCounter, runtime.FixedWindow, runtime.TokenBucket, runtime.LeakyBucket}).Draw(t, "cap's algorithm"),
	}
	if rapid.IntRange(0, 3).Draw(t, "cap blocks") == 3 {
		r.Block = s.window / 2
	} else if rapid.IntRange(0, 3).Draw(t, "cap waits") == 3 {
		r.Wait = s.window // to no effect
	}
	if rapid.IntRange(0, 3).Draw(t, "cap in shadow mode") == 3 {
		r.Mode = runtime.ModeShadow
	}
	return r
}

// caps holds the cap of each process against its max, which counts a call when it comes, unless
// its own limits refuse it.
func (o *oracle) caps() {
	r := o.program.Cap
	if r == nil || !o.exact {
		return
	}
	most := r.Max
	if r.Algorithm != runtime.SlidingLog && r.Algorithm != runtime.SlidingCounter {
		most *= 2
	}
	others := func(a *asked) bool { return a.call.Beside > 0 }
	for _, last := range o.asked {
		if last.more || o.uncapped(last) {
			continue
		}
		sum := o.capped(last, r.Window, func(a *asked) bool { return !o.uncapped(a) && a.admitted() && a.number <= last.number })
		if last.admitted() && len(o.jumps) == 0 && r.Mode.Refuses() && sum > most {
			o.wrong("a process admits no more than its cap", "%d calls at #%d, the most is %d", sum, last.number, most)
			return
		}
		if last.d.Source != rule.SourceProcess {
			continue
		}
		if !r.Mode.Refuses() {
			o.wrong("a cap in shadow mode refuses nobody", "#%d", last.number)
		}
		used := o.capped(last, r.Window, func(a *asked) bool {
			return a != last && !a.call.Exempt && (a.admitted() || a.end >= last.start) && a.d.Source != rule.SourceProcess
		})
		if r.Algorithm == runtime.SlidingLog && r.Block == 0 && len(o.jumps) == 0 && used < r.Max && o.capped(last, r.Window, others) == 0 {
			o.wrong("a cap refuses nobody who has room", "#%d: %d of %d are used", last.number, used, r.Max)
		}
	}
}

// capped returns how many calls of a process count that came in a window up to one of them.
func (o *oracle) capped(last *asked, window time.Duration, counts func(*asked) bool) (n int64) {
	for _, a := range o.asked {
		if a.process == last.process && !a.more && a.start <= last.start && last.start-a.start < window && counts(a) {
			n++
		}
	}
	return n
}

// uncapped reports whether the cap may not hold for a call.
func (o *oracle) uncapped(a *asked) bool { return o.isOff(a) || a.call.Exempt }
