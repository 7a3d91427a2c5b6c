package crossing

import (
	"slices"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A scope says what programs of a world may hold.
type scope struct {
	window time.Duration // about that of all rules
	steps  int
	leases bool
	jumps  bool
	faults []fault
	// real is a world of real servers, on which time passes.
	real bool
	// far is a server that is far away.
	far bool
}

// features are what a program may hold, each one or not. A program with a few of them
// makes more of these than one with all of them.
type features struct {
	Waits, Leases, Permits, Buckets, Shadows, Overrides, Resets, Jumps, Faults bool
	Leaving, Coming, Settling, Later, Mistakes, Each, Keys, Costs, OwnMax      bool
	Periods, Reserves, Meters, Blocks, Holds, Exempts, Adaptive, Nexts         bool
	Registers, Nobodies, Dear, Tenants                                         bool
	Books                                                                      bool    // only Periods, and debts
	Divided                                                                    bool    // only Tenants
	Turns                                                                      bool    // only Permits of some processes, and Waits
	Kinds                                                                      []fault // which Faults
}

// drawFeatures draws which there are.
func (s *scope) drawFeatures(t *rapid.T) (f features) {
	for i, feature := range []*bool{
		&f.Waits, &f.Leases, &f.Permits, &f.Buckets, &f.Shadows, &f.Overrides, &f.Resets, &f.Jumps, &f.Faults,
		&f.Leaving, &f.Coming, &f.Settling, &f.Later, &f.Mistakes, &f.Each, &f.Keys, &f.Costs, &f.OwnMax, &f.Periods, &f.Reserves, &f.Meters,
		&f.Blocks, &f.Holds, &f.Exempts, &f.Adaptive, &f.Nexts, &f.Registers, &f.Nobodies, &f.Dear, &f.Tenants,
	} {
		*feature = rapid.IntRange(0, 2).Draw(t, "feature "+strconv.Itoa(i)) > 0
	}
	if !s.real && rapid.IntRange(0, 7).Draw(t, "books") == 7 {
		// What a ledger can follow, and nothing else.
		return features{Books: true, Periods: true, Settling: true, Costs: true, OwnMax: true, Nexts: f.Nexts, Later: f.Later, Keys: f.Keys}
	}
	if !s.real && rapid.IntRange(0, 7).Draw(t, "divided only") == 7 {
		return features{Divided: true, Tenants: true, Buckets: true, Costs: f.Costs, Settling: f.Settling, Keys: f.Keys, Blocks: f.Blocks}
	}
	if !s.real && !s.far && rapid.IntRange(0, 7).Draw(t, "room only") == 7 {
		// Calls that wait for room, and what makes some.
		return features{Waits: true, Resets: f.Resets, Overrides: f.Overrides, Settling: true, Later: f.Later, Buckets: f.Buckets, Costs: f.Costs, Nexts: f.Nexts, Leaving: f.Leaving}
	}
	if turns := rapid.IntRange(0, 7).Draw(t, "turns only"); !s.real && turns == 7 || s.far && turns == 6 {
		return features{Turns: true, Costs: f.Costs, Leaving: f.Leaving, Later: f.Later}
	}
	f.Leases = f.Leases && s.leases && !f.Waits
	f.Jumps = f.Jumps && s.jumps
	if f.Faults = f.Faults || s.real; f.Faults {
		f.Kinds = rapid.SliceOfNDistinct(rapid.SampledFrom(s.faults), 1, 2, rapid.ID).Draw(t, "faults")
	}
	return f
}

// draw draws a program.
func (s *scope) draw(t *rapid.T) *program {
	f := s.drawFeatures(t)
	p := &program{load: new(load), Processes: rapid.SampledFrom([]int{1, 1, 2, 2, 3, 5}).Draw(t, "processes"), Polled: f.Overrides}
	p.Hasty = s.real && rapid.Bool().Draw(t, "hasty")
	p.OneClient = s.real && p.Processes > 1 && rapid.IntRange(0, 3).Draw(t, "one client") == 3
	if s.far {
		p.Trip, p.Edited = drawTrip(t), f.Overrides && !f.Jumps && rapid.Bool().Draw(t, "edited")
	}
	p.Replicas = rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "replicas")
	p.Roams = !s.real && f.Periods && (f.Books || rapid.Bool().Draw(t, "seldom")) && rapid.Bool().Draw(t, "roams")
	p.Days = f.Books && rapid.Bool().Draw(t, "days")
	p.Closes = !f.Books && rapid.IntRange(0, 7).Draw(t, "closes") == 7
	rules := []int{1, 1, 2, 3}
	if f.Turns {
		p.Turns, p.Lasts, p.Closes, rules = true, drawLasting(t), false, rules[:1]
	}
	for i := range rapid.SampledFrom(rules).Draw(t, "rules") {
		r := s.drawRule(t, f)
		if f.Adaptive && rapid.Bool().Draw(t, "adapts") {
			r.Adaptive = p.load
		}
		r.Name = "rule" + strconv.Itoa(i)
		if i > 0 && f.Shadows && rapid.Bool().Draw(t, "shadow") {
			mode := rapid.SampledFrom([]runtime.Mode{runtime.ModeShadow, runtime.ModeSoft}).Draw(t, "mode")
			r.Mode, r.Prefix = mode, "shadow:"+r.Name+":"
			if rapid.IntRange(0, 3).Draw(t, "beside") == 0 {
				// The same limit in shadow mode, under other numbers, which the
				// one that enforces shares its keys with.
				most := r.Max
				for j, other := range p.Rules {
					if other.Headroom > 0 && (j == 0 || p.shares(j)) {
						other.Headroom = -1 // which fits either max
					}
				}
				*r = *p.Rules[0]
				r.Name, r.Max, r.Mode = "rule"+strconv.Itoa(i), most, mode
				r.Prefix, p.Rules[0].Prefix = "shared:", "shared:"
			}
		}
		if i > 0 && !p.shares(0) && rapid.IntRange(0, 7).Draw(t, "one limit") == 7 {
			// Both have the same terms, and so are one limit.
			*r = *p.Rules[0]
			r.Name, r.Prefix, p.Rules[0].Prefix = "rule"+strconv.Itoa(i), "shared:", "shared:"
		}
		p.Rules = append(p.Rules, r)
		if r.Period != rule.NoPeriod && p.Begins.IsZero() && !s.real {
			p.Begins = s.drawBegin(t, r)
		}
	}
	if !f.Turns && rapid.IntRange(0, 5).Draw(t, "cap") == 5 {
		p.Cap = s.drawCap(t)
	}
	p.Steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step { return s.drawStep(t, p, f) }), 3, s.steps).Draw(t, "steps")
	if s.real { // what there are programs on real servers for
		x := step{Gap: s.drawGap(t, p), Do: s.drawTrouble(t, p, f)}
		p.Steps = slices.Insert(p.Steps, rapid.IntRange(0, len(p.Steps)).Draw(t, "before"), x)
	}
	return p
}

func drawTrip(t *rapid.T) trip {
	times := rapid.SampledFrom([]time.Duration{0, time.Millisecond, 20 * time.Millisecond})
	return trip{There: times.Draw(t, "there"), Back: times.Draw(t, "back"), Uneven: times.Draw(t, "uneven") / 4,
		Trust: rapid.SampledFrom([]time.Duration{time.Second, trust, 0}).Draw(t, "trust")}
}

// drawRule draws a limit of any kind.
func (s *scope) drawRule(t *rapid.T, f features) *runtime.Rule {
	algorithms := []runtime.Algorithm{runtime.SlidingLog, runtime.SlidingCounter, runtime.FixedWindow}
	if f.Buckets {
		algorithms = append(algorithms, runtime.TokenBucket, runtime.LeakyBucket)
	}
	if f.Permits {
		algorithms = append(algorithms, runtime.Concurrency)
	}
	if f.Books {
		algorithms = []runtime.Algorithm{runtime.FixedWindow}
	} else if f.Divided {
		algorithms = []runtime.Algorithm{runtime.TokenBucket, runtime.LeakyBucket}
	} else if f.Turns {
		algorithms = []runtime.Algorithm{runtime.Concurrency}
	}
	r := &runtime.Rule{
		Window:    s.window * time.Duration(rapid.SampledFrom([]int{2, 2, 1, 6}).Draw(t, "window")) / 2,
		Max:       rapid.SampledFrom([]int64{3, 1, 2, 5, 10, 40}).Draw(t, "max"),
		Algorithm: rapid.SampledFrom(algorithms).Draw(t, "algorithm"),
		Fail:      rapid.SampledFrom([]runtime.FailurePolicy{runtime.FailOpen, runtime.FailClosed, runtime.FailLocal}).Draw(t, "policy"),
		Invalid:   rule.InvalidKeyPolicy(rapid.IntRange(0, int(rule.InvalidAdmit)).Draw(t, "invalid keys")),
	}
	if s.real && r.Algorithm == runtime.Concurrency {
		r.Window = 5 * time.Second // a busy machine renews permits late
	}
	r.Window += time.Duration(rapid.IntRange(0, 1).Draw(t, "uneven")) * 7 * time.Microsecond
	switch r.Algorithm {
	case runtime.FixedWindow:
		if f.Periods && (f.Books && rapid.Bool().Draw(t, "book") || rapid.Bool().Draw(t, "calendar")) {
			s.drawPeriod(t, r)
		}
	case runtime.SlidingLog:
		if f.Meters && f.Dear && !f.Waits && rapid.Bool().Draw(t, "dear") { // parts that wait are of different times
			r.Max = rapid.Int64Range(rule.MaxLogCost, 4*rule.MaxLogCost).Draw(t, "much")
		}
		r.Storage = runtime.Storage(rapid.IntRange(0, int(runtime.StoragePacked)).Draw(t, "storage"))
		if rapid.IntRange(0, 4).Draw(t, "slices") == 0 {
			r.Resolution = s.window / 20
		}
	case runtime.SlidingCounter:
		r.Buckets = rapid.SampledFrom([]rule.Buckets{{}, rule.EqualBuckets(7), rule.LayeredBuckets(4, 5), rule.AdaptiveBuckets()}).Draw(t, "buckets")
	case runtime.TokenBucket, runtime.LeakyBucket:
		if rapid.IntRange(0, 2).Draw(t, "bursts") == 0 {
			r.Burst = rapid.Int64Range(1, 2*r.Max).Draw(t, "burst")
		}
	}
	if f.Turns {
		r.Window, r.Wait = time.Hour, time.Hour
		return r
	}
	if f.Waits && rapid.IntRange(0, 2).Draw(t, "wait") > 0 {
		r.Wait = time.Duration(rapid.IntRange(1, 8).Draw(t, "wait for")) * s.window / 2
	} else if f.Leases && r.Algorithm != runtime.Concurrency {
		r.Lease = s.window / 40 * time.Duration(rapid.IntRange(1, 15).Draw(t, "lease"))
	}
	if f.Books {
		r.Debt = rapid.SampledFrom([]rule.Debt{rule.DebtCarry, rule.DebtCarry, rule.DebtDefault, rule.DebtForgive}).Draw(t, "debt")
		return r
	}
	s.drawBlock(t, r, f)
	if f.Tenants {
		s.drawDivision(t, r)
	}
	if f.Reserves && !r.Hold && r.Block == 0 && r.Algorithm != runtime.Concurrency && rapid.Bool().Draw(t, "reserves") {
		s.drawReserve(t, r)
	}
	return r
}

// drawReserve gives a rule a policy for debts and, if it can have one, a reserve.
func (s *scope) drawReserve(t *rapid.T, r *runtime.Rule) {
	debts := []rule.Debt{rule.DebtDefault, rule.DebtForgive}
	if r.Algorithm == runtime.FixedWindow {
		debts = []rule.Debt{rule.DebtDefault, rule.DebtRefuse, rule.DebtCarry, rule.DebtForgive}
		r.Reserve = s.window * time.Duration(rapid.IntRange(0, 4).Draw(t, "reserve")) / 4
		if s.real && r.Reserve > 0 {
			r.Reserve = 5 * time.Second // a busy machine renews late
		}
		r.Lease = 0
	}
	r.Debt = rapid.SampledFrom(debts).Draw(t, "debt")
}

// drawPeriod gives a rule a period in place of its window.
func (s *scope) drawPeriod(t *rapid.T, r *runtime.Rule) {
	r.Window = 0
	r.Period = rapid.SampledFrom([]rule.Period{rule.Day, rule.Week, rule.Month}).Draw(t, "period")
	r.Keep = rapid.SampledFrom([]uint8{0, 0, 1, 3}).Draw(t, "keep")
	s.drawPlace(t, r)
}

// drawPlace gives a period a zone and an anchor.
func (s *scope) drawPlace(t *rapid.T, r *runtime.Rule) {
	r.Zone = rapid.SampledFrom([]string{"", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia"}).Draw(t, "zone")
	switch r.Period {
	case rule.Week:
		r.Anchor = rapid.IntRange(0, 7).Draw(t, "weekday")
	case rule.Month:
		r.Anchor = rapid.SampledFrom([]int{0, 4, 15, 30, 31}).Draw(t, "day")
	}
}

// drawBegin draws when a program begins: so shortly before the end of a rule's period, often
// in days in which zones change, that some of its calls come after that.
func (s *scope) drawBegin(t *rapid.T, r *runtime.Rule) time.Time {
	dates := []string{
		"2011-12-29", "2018-11-03", "2019-02-16", "2026-03-28", "2026-03-29", "2026-10-03", "2026-10-24", "2026-10-25", "2027-02-27", "2028-02-28",
	}
	if s.far { // after wireBegin
		dates = []string{"2126-02-27", "2126-03-30", "2126-03-31", "2126-04-05", "2126-04-06", "2126-10-05", "2126-10-26", "2126-10-27", "2128-02-28"}
	}
	date := rapid.SampledFrom(dates).Draw(t, "date")
	at, err := time.Parse(time.DateOnly, date)
	if err != nil {
		t.Fatal(err)
	}
	return edge(r, at).Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "before the edge")) * s.window / 20)
}

// drawStep draws what happens next.
func (s *scope) drawStep(t *rapid.T, p *program, f features) step {
	if f.Turns {
		return s.drawTurns(t, p, f)
	}
	st := step{Gap: s.drawGap(t, p), Process: rapid.IntRange(0, p.Processes-1).Draw(t, "process")}
	kinds := []string{"call", "call", "call", "call", "call", "call"}
	for kind, may := range map[string]bool{"reset": f.Resets, "change": f.Overrides, "jump": f.Jumps, "trouble": f.Faults, "hold": slices.ContainsFunc(p.Rules, holds), "scale": f.Adaptive, "register": f.Registers, "forget": slices.Contains(s.faults, flushed)} {
		if may {
			kinds = append(kinds, kind)
		}
	}
	if p.Edited { // what edits do to each other is what they are for
		kinds = append(kinds, "change", "change")
	}
	slices.Sort(kinds)
	if slices.ContainsFunc(indexes(p.Rules), p.surges) && rapid.IntRange(0, 20).Draw(t, "a surge") == 20 {
		st.Do = drawSurge(t, p)
		return st
	}
	if s.real && rapid.IntRange(0, 40).Draw(t, "a crowd") == 40 {
		st.Do = crowd{Calls: rapid.IntRange(1500, 2000).Draw(t, "calls")}
		return st
	}
	switch rapid.SampledFrom(kinds).Draw(t, "action") {
	case "call":
		st.Do = s.drawCall(t, p, f)
		if rapid.IntRange(0, 2).Draw(t, "repeated") == 2 {
			st.Times, st.Every = rapid.IntRange(2, 12).Draw(t, "times"), s.drawGap(t, p)
		}
	case "reset":
		st.Do = reset{Rule: rapid.IntRange(0, len(p.Rules)-1).Draw(t, "rule"), Key: drawKey(t, f)}
	case "change":
		if p.Edited {
			st.Do = s.drawEdit(t, p)
		} else {
			st.Do = s.drawChange(t, p, f)
		}
	case "hold":
		st.Do = s.drawHold(t, p, f)
	case "register":
		st.Do = drawRegister(t, p)
	case "scale":
		st.Do = scale{rapid.SampledFrom([]float64{0.1, 0.5, 1, 1.5, 3}).Draw(t, "factor")}
	case "jump":
		st.Do = jump{By: time.Duration(rapid.IntRange(-40, 40).Draw(t, "by")) * s.window / 20}
	case "forget":
		st.Do = s.drawForget(t, p)
	case "trouble":
		st.Do = s.drawTrouble(t, p, f)
	}
	return st
}

// drawTrouble draws a fault. On real servers most come while callers are refused.
func (s *scope) drawTrouble(t *rapid.T, p *program, f features) trouble {
	x := trouble{Kind: rapid.SampledFrom(f.Kinds).Draw(t, "fault"), Lasts: s.window/2 + s.drawGap(t, p), Every: s.window / 8}
	apart := slices.ContainsFunc(indexes(p.Rules), func(i int) bool { return !p.Rules[i].Mode.Refuses() && !beside(p, i) })
	if s.real && apart && rapid.Bool().Draw(t, "forbidden") {
		x.Kind = forbidden
	}
	if s.real && rapid.IntRange(0, 3).Draw(t, "busy") > 0 {
		f.Leaving, f.Coming, f.Settling, f.Mistakes, f.Costs, f.Meters = false, false, false, false, false, false
		f.Each = rapid.Bool().Draw(t, "busy each")
		c := s.drawCall(t, p, f)
		c.Holds = 0
		x.Busy = &c
	}
	return x
}
