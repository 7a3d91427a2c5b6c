package main

// judgePermits judges the calls that held permits of one key: never were more held
// for certain at a time than there are, and none was denied while all that can have
// been held left enough.
func judgePermits(v *verdict, calls []*entry, c *circumstance) {
	rule := &kinds[kindPermits].rule
	for _, e := range calls {
		if e.Fate == strange || e.Fate == denied && e.Wait <= 0 {
			v.Wrong++
			v.note("permits: wrong: %+v", *e)
		}
		if e.Fate == admitted && !e.undecided() {
			var n int64
			for _, o := range calls {
				if o.Fate == admitted && !o.undecided() && o.End <= e.End && e.End < o.At {
					n += int64(o.Cost)
				}
			}
			if n > rule.Max*(1+c.lost[e.Site]) {
				v.Over++
				v.note("permits: %d were held when a call began: %+v", n, *e)
			}
		}
		if e.Fate == denied && !e.undecided() {
			if n := possiblyHeld(calls, e, c); n+int64(e.Cost) <= rule.Max {
				v.Spurious++
				v.note("permits: denied though at most %d of %d were held: %+v", n, rule.Max, *e)
			}
		}
	}
}

// possiblyHeld returns how many permits can have been held while a call was denied.
// Those that nobody has returned for sure lapse within a window.
func possiblyHeld(calls []*entry, refused *entry, c *circumstance) (n int64) {
	lapse := permitWindow.Microseconds() + 2*slack
	for _, e := range calls {
		var until int64
		switch {
		case e.Fate == denied && !e.undecided():
			continue
		case e.Settled != 0 && !e.undecided():
			until = e.Settled + slack
		default:
			until = max(e.latest(c), e.At) + lapse
		}
		if e.Begin <= refused.End && refused.Begin <= until {
			n += int64(e.Cost)
		}
	}
	for _, at := range c.killed {
		if refused.Begin <= c.latest(refused.Site, at)+lapse {
			n += kinds[kindPermits].cost
		}
	}
	return n
}
