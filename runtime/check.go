package runtime

import (
	"fmt"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/plan"
)

// The generator warns by the same timeout, or else this does not compile.
var _ [0]struct{} = [DefaultTimeout - spec.Timeout]struct{}{}

// checkPrefix returns an [ErrInvalidLimit] if the rule has no keys of its own.
func (r *Rule) checkPrefix() error {
	switch {
	case r == nil:
		return fmt.Errorf("%w: no rule", ErrInvalidLimit)
	case r.Prefix == "" && r.Name == "":
		return fmt.Errorf("%w: the rule has neither a Prefix nor a Name: give it a Name, or its keys are those of every such rule", ErrInvalidLimit)
	}
	return nil
}

// Check returns an [ErrInvalidLimit] that says what is wrong with the rule: then no call can be
// counted by it. A rule that is right may still conflict with another one, see
// [Limiter.Register].
func (r *Rule) Check() error {
	if r == nil {
		return r.checkPrefix()
	}
	return r.check(r.Max, 1)
}

// check returns an [ErrInvalidLimit] if the rule's numbers, or the max and cost of a call, are
// out of bounds.
func (r *Rule) check(max, cost int64) error {
	if err := r.checkPrefix(); err != nil {
		return err
	}
	if plan.Way(r.Algorithm) >= plan.Ways || r.Storage > StoragePacked || r.Mode > ModeSoft || r.Fail > FailLocal || r.Invalid > InvalidAdmit {
		return fmt.Errorf("%w: rule %q: unknown algorithm, storage, mode, failure policy or policy for invalid keys", ErrInvalidLimit, r.Name)
	}
	if _, err := r.period(); err != nil {
		return r.invalid(err)
	}
	if err := r.fits(); err != nil {
		return r.invalid(err)
	}
	n := r.numbers()
	return r.invalid(n.Check(max, cost))
}

// invalid returns an [ErrInvalidLimit] that says why the rule cannot be counted, or nil.
func (r *Rule) invalid(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: rule %q: %w", ErrInvalidLimit, r.Name, err)
}

// fits returns which field has no effect beside the algorithm, or nil.
func (r *Rule) fits() error {
	switch {
	case r.Storage != StorageZSET && r.Algorithm != SlidingLog:
		return fmt.Errorf("storage: a %v is stored in one way: leave Storage out", r.Algorithm)
	case r.Resolution != 0 && r.Algorithm != SlidingLog:
		return fmt.Errorf("resolution: a %v keeps no times of events: leave Resolution out", r.Algorithm)
	case r.Buckets != (Buckets{}) && r.Algorithm != SlidingCounter:
		return fmt.Errorf("buckets: a %v has none: leave Buckets out, or count with a %v", r.Algorithm, SlidingCounter)
	}
	return nil
}
