package storetest

import (
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// periods are rules of every period, in zones that differ by up to a day, and where clocks
// are set forward and back.
func (t *trial) periods() (all []runtime.Rule) {
	zones := []string{"", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Pacific/Kiritimati", "Australia/Lord_Howe", "America/St_Johns"}
	for i := 0; i < len(zones); i += t.every(3) {
		for period, anchors := range map[rule.Period][]int{rule.Day: {0}, rule.Week: {1, 7}, rule.Month: {1, 31}, rule.Year: {229, 1001}} {
			for _, anchor := range anchors {
				of := t.rule
				of.Period, of.Zone, of.Anchor = period, zones[i], anchor
				all = append(all, of)
			}
		}
	}
	return all
}

// end returns when the rule's period ends that a time lies in, by package time. It knows no
// zone in which a midnight is left out.
func end(r *runtime.Rule, now int64) int64 {
	location, err := time.LoadLocation(r.Zone)
	if err != nil {
		panic(err)
	}
	year, month, day := time.UnixMicro(now).In(location).Date()
	for i := 0; ; i++ {
		at := time.Date(year, month, day+1+i, 0, 0, 0, 0, location)
		last := at.AddDate(0, 0, 1).Month() != at.Month()
		on := func(day int) bool { return at.Day() == day || last && at.Day() < day }
		switch r.Period {
		case rule.Week:
			if int(at.Weekday()+6)%7+1 != r.Anchor {
				continue
			}
		case rule.Month:
			if !on(r.Anchor) {
				continue
			}
		case rule.Year:
			if int(at.Month()) != r.Anchor/100 || !on(r.Anchor%100) {
				continue
			}
		}
		return at.UnixMicro()
	}
}

// chargeOf returns a charge to a rule by a name.
func (t *trial) chargeOf(rule *runtime.Rule, cost int64) rawstore.Charge {
	rule.Window = 0
	return rawstore.Charge{Rule: rule, Key: fmt.Appendf(nil, "%s%v:%s:%d", Prefix(t.T), rule.Period, rule.Zone, rule.Anchor), Max: rule.Max, Cost: cost}
}

// period wants periods to end when the calendar says, by the clock of the store.
func period(t *trial) {
	for _, rule := range t.periods() {
		c := t.chargeOf(&rule, 10)
		t.take(c)
		denied, after, before := t.timed(c)
		ends := end(&rule, after)
		if ends != end(&rule, before) {
			continue // in between
		}
		for _, told := range []time.Duration{denied.RetryAfter, denied.ResetAfter} {
			if us := told.Microseconds(); denied.Allowed || us < ends-before || us > ends-after {
				t.Errorf("%v in %q, anchor %d: %+v, want the end from %d to %d µs away", rule.Period, rule.Zone, rule.Anchor, denied, ends-before, ends-after)
			}
		}
	}
}

// advanceTo sets the clock.
func (t *trial) advanceTo(at int64) { t.Advance(time.Duration(at-t.Now()) * time.Microsecond) }

// periodEdge wants a period to end at its last microsecond, whenever it was charged.
func periodEdge(t *trial) {
	for _, rule := range t.periods() {
		c := t.chargeOf(&rule, 10)
		for range 3 {
			ends := end(&rule, t.Now())
			r := t.admit(c, 0)
			if r.ResetAfter.Microseconds() != ends-t.Now() {
				t.Errorf("%v in %q, anchor %d: whole after %v, want %d µs", rule.Period, rule.Zone, rule.Anchor, r.ResetAfter, ends-t.Now())
			}
			t.advanceTo(ends - 1)
			if r := t.deny(c, 0); r.RetryAfter != time.Microsecond {
				t.Errorf("%v in %q, anchor %d: %+v a microsecond before the end", rule.Period, rule.Zone, rule.Anchor, r)
			}
			t.advanceTo(ends)
		}
		t.admit(c, 0)
		t.advanceTo(end(&rule, end(&rule, t.Now())) - 1) // of the period after
		t.admit(c, 0)
	}
}

// periodOfChangedAnchor wants a period that runs to end as it was to, whatever the anchor
// and the zone of calls become, and the new ones to hold from then on.
func periodOfChangedAnchor(t *trial) {
	t.rule.Period, t.rule.Anchor = rule.Month, 1
	old := t.charge("k", 10)
	ends := end(old.Rule, t.Now())
	t.admit(old, 0)
	changed := *old.Rule
	changed.Anchor, changed.Zone = 15, "Asia/Kolkata"
	c := old
	c.Rule = &changed
	for _, at := range []int64{t.Now(), end(&changed, t.Now()), ends - 1} {
		t.advanceTo(at)
		if r := t.deny(c, 0); r.RetryAfter.Microseconds() != ends-at {
			t.Errorf("with another anchor: %+v, want the old end in %d µs", r, ends-at)
		}
	}
	t.advanceTo(ends)
	if r := t.admit(c, 0); r.ResetAfter.Microseconds() != end(&changed, ends)-ends {
		t.Errorf("after the old end: %+v, want the new one in %d µs", r, end(&changed, ends)-ends)
	}
	t.deny(old, 0)
	if r := t.peek(old)[0]; r.RetryAfter.Microseconds() != end(&changed, ends)-ends {
		t.Errorf("back to the old anchor: %+v", r)
	}
}

// periodSettledLater wants what a call owes to be charged to the period in which it is settled.
func periodSettledLater(t *trial) {
	c := t.charge("k", 4)
	r := t.admit(c, 6)
	t.settle(c, r, 6)
	t.left("k", 4)
	ends := end(c.Rule, t.Now())
	t.advanceTo(ends)
	t.left("k", 10)
	t.settle(c, r, 7)
	t.left("k", 7)
	if r := t.peek(t.charge("k", 8))[0]; r.RetryAfter.Microseconds() != end(c.Rule, ends)-ends {
		t.Errorf("got %+v, want the period that was charged to be that of the debt", r)
	}
}

// periodRefundedLater wants nothing to come back of a charge to another period, also to one
// whose begin lies before the end of the last one.
func periodRefundedLater(t *trial) {
	c := t.charge("k", 4)
	r := t.admit(c, 6)
	t.settle(c, r, 1)
	t.left("k", 9)
	t.advanceTo(end(c.Rule, t.Now()))
	next := *c.Rule
	next.Anchor = 1231
	later := c
	later.Rule = &next
	t.refund(later, r)
	t.left("k", 10)
	second := t.admit(later, 6)
	t.refund(later, r)
	t.left("k", 6)
	t.refund(later, second)
	t.left("k", 10)
}

// periodAndBlock wants a block to outlive a period, and a period a block.
func periodAndBlock(t *trial) {
	t.rule.Block = time.Hour
	c := t.charge("k", 10)
	ends := end(c.Rule, t.Now())
	t.advanceTo(ends - 1_000_000)
	t.admit(c, 0)
	if r := t.deny(c, 0); !r.Blocked || r.RetryAfter != time.Hour {
		t.Errorf("got %+v, want a block", r)
	}
	t.advanceTo(ends)
	t.deny(c, 0)
	t.advanceTo(ends - 1_000_000 + time.Hour.Microseconds())
	t.admit(c, 0)
	ends = end(c.Rule, t.Now())
	t.deny(c, 0)
	t.Advance(time.Hour)
	if r := t.peek(c)[0]; r.Allowed || r.Blocked || r.RetryAfter.Microseconds() != ends-t.Now() {
		t.Errorf("got %+v, want the rest of the period", r)
	}
}

// periodClockStepsBack wants a period that has begun to go on when the clock steps back to
// before its begin.
func periodClockStepsBack(t *trial) {
	c := t.charge("k", 7)
	ends := end(c.Rule, t.Now())
	t.advanceTo(ends - 1)
	t.admit(c, 3)
	t.advanceTo(ends)
	t.admit(c, 3)
	next := end(c.Rule, ends)
	t.Advance(-time.Hour)
	r := t.deny(c, 3)
	if r.RetryAfter.Microseconds() != next-t.Now() {
		t.Errorf("got %+v, want the end of the period in %d µs", r, next-t.Now())
	}
	second := t.admit(withCost(c, 3), 0)
	if second.At < ends {
		t.Errorf("charged at %d, before the period began", second.At)
	}
	t.settle(withCost(c, 3), second, 1)
	t.left("k", 2)
}
