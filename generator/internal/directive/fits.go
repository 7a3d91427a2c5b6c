package directive

import (
	"errors"
	"fmt"
	"time"

	"github.com/rategen/rategen/internal/spec"
)

// These functions return the fits column of a row of Options.

// rule returns the options that must go together for the runtime, too.
func (s *Settings) rule() *spec.Rule {
	return &spec.Rule{
		Algorithm: s.Algorithm(), Window: s.Window(), Resolution: get[time.Duration](s, "resolution"),
		Wait: s.Wait(), Block: s.Block(), Lease: s.Lease(), Period: s.Period() != spec.NoUnit,
		Reserve: s.Reserve(), Debt: s.Debt(), Hold: s.Expr("hold") != nil, Keep: s.Keep(), Ledger: get[string](s, "ledger") != "", Shared: s.Divides(),
	}
}

// ruleFits makes a column of a check that the runtime makes, too.
func ruleFits(check func(*spec.Rule) error) func(*Settings) error {
	return func(s *Settings) error { return check(s.rule()) }
}

func blockFits(s *Settings) error {
	if !s.Refuses() {
		return fmt.Errorf("mode=%s refuses nobody, so nobody can be blocked: remove one of the two", s.Mode())
	}
	return s.rule().FitsBlock()
}

func holdFits(s *Settings) error {
	if !s.Refuses() {
		return fmt.Errorf("mode=%s refuses nobody, so nobody can be held back: remove one of the two", s.Mode())
	}
	return s.rule().FitsHold()
}

func shareFits(s *Settings) error {
	if s.Use() != "" && !s.written["prefix"] && !s.Has("headroom") {
		return fmt.Errorf("the policy %s is not divided, and all limits that use it count together: write headroom= there, or add prefix= for a limit that counts apart", s.Use())
	}
	return s.rule().FitsShare()
}

func weightFits(s *Settings) error {
	if !s.Has("share") {
		return errors.New("it is that of a share, and there is none: write share=, or remove weight")
	}
	return nil
}

// headroomFits refuses a headroom that nobody divides. That of a policy is for who uses it.
func headroomFits(s *Settings) error {
	if s.where == inPolicy {
		return s.rule().FitsShare()
	}
	if !s.Has("share") {
		return errors.New("it is for light shares, and there are none: write share=, or remove headroom")
	}
	return nil
}

// useFits refuses a directive without a share whose policy is divided.
func useFits(s *Settings) error {
	if s.policy != nil && s.policy.Settings.Has("headroom") && !s.Has("share") {
		return fmt.Errorf("the policy %s has a headroom, and so is divided: write share=", s.Use())
	}
	return nil
}

// onlyFits refuses two lists of methods.
func onlyFits(s *Settings) error {
	if s.written["except"] {
		return errors.New("only says which methods the limit applies to, so except has no meaning: remove one of the two")
	}
	return nil
}

func meterFits(s *Settings) error {
	for _, other := range []string{"refund", "settle", "hold"} {
		if s.written[other] {
			return fmt.Errorf("it charges what a call costs while that runs, so %s has no meaning beside it: remove one of the two, or write a second limit", other)
		}
	}
	return s.rule().Takes("meter")
}

// takes makes a column of whether the algorithm takes an option that most do.
func takes(option string) func(*Settings) error {
	return ruleFits(func(r *spec.Rule) error { return r.Takes(option) })
}
