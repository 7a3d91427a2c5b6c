package rule

import (
	"errors"
	"fmt"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/calendar"
)

// Engine is how package runtime reads rules and limits. Programs have no use for it.
var Engine engine

type engine struct{}

// CalendarOf returns the period of a rule, nil if it has none, or what is wrong with it.
func (engine) CalendarOf(r *Rule) (*calendar.Period, error) {
	if r.Period == NoPeriod && (r.Zone != "" || r.Anchor != 0) {
		return nil, errors.New("a zone and an anchor are those of a period: set Period, or leave them out")
	}
	if r.Period == NoPeriod {
		return nil, nil
	}
	if r.Window != 0 {
		return nil, fmt.Errorf("the calendar says how long a %v is: leave the window out", r.Period)
	}
	return calendar.Load(spec.Unit(r.Period), r.Zone, r.Anchor)
}

// Layers returns how many coarse buckets there are, 0 for adaptive ones, and of how many fine
// ones each is, 0 for equal ones.
func (engine) Layers(b Buckets) (coarse, fine int64) {
	b = b.orDefault()
	return int64(b.coarse), int64(b.fine)
}

// Capacity returns the largest cost that a bucket or a queue admits at a max: the burst of a
// bucket, less what drains in a lease. Where that would leave nothing there are no leases, and
// it is all of the burst.
func (engine) Capacity(r *Rule, max int64) int64 {
	burst := r.burst(max)
	if drains := r.drained(max); drains < burst && !r.isQueue() {
		return burst - drains
	}
	return burst
}

// FitHeadroom lowers the headroom of a rule whose max or burst was lowered. A bucket for one event is
// not divided. A max of 0 counts nothing, and changes nothing.
func (engine) FitHeadroom(r *Rule) {
	if most := spec.MostHeadroom(Engine.Capacity(r, r.Max), r.Max); r.Max > 0 && (r.Headroom > most || most == 0) {
		r.Headroom = most
	}
}

// CheckPrefix returns an [ErrInvalidLimit] if a rule has no keys of its own.
func (engine) CheckPrefix(r *Rule) error {
	if r == nil {
		return fmt.Errorf("%w: no rule", ErrInvalidLimit)
	}
	if r.Prefix == "" && r.Name == "" {
		return fmt.Errorf("%w: the rule has neither a Prefix nor a Name: give it a Name, or its keys are those of every such rule", ErrInvalidLimit)
	}
	return nil
}

// CheckCall returns an [ErrInvalidLimit] if the numbers of a rule, or the max and cost of a
// call, are out of bounds.
func (engine) CheckCall(r *Rule, max, cost int64) error {
	if err := Engine.CheckPrefix(r); err != nil {
		return err
	}
	if int(r.Algorithm) >= len(algorithm.Names) || r.Storage > StoragePacked || r.Mode > ModeSoft || r.Fail > FailLocal || r.Invalid > InvalidAdmit {
		return fmt.Errorf("%w: rule %q: unknown algorithm, storage, mode, failure policy or policy for invalid keys", ErrInvalidLimit, r.Name)
	}
	p, err := Engine.CalendarOf(r)
	if err == nil {
		err = r.fits()
	}
	if err == nil {
		err = r.check(p, max, cost)
	}
	return Engine.Invalid(r, err)
}

// Invalid returns an [ErrInvalidLimit] that says why a rule cannot be counted, or nil.
func (engine) Invalid(r *Rule, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: rule %q: %w", ErrInvalidLimit, r.Name, err)
}
