package spec

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
)

// A Rule has the options of a rule that must go together.
type Rule struct {
	Algorithm                              string
	Window, Resolution, Wait, Block, Lease time.Duration
	Reserve                                time.Duration
	Debt                                   string // or empty
	Hold                                   bool
	Period                                 bool // of the calendar; Window is a time that none is longer than
	Keep                                   int64
	Ledger                                 bool
	Shared                                 bool // divided among shares
}

// IsQueue reports whether calls stand in line, and leave it evenly spaced.
func (r *Rule) IsQueue() bool { return r.Wait > 0 && r.plain().Meets(algorithm.Wait) }

func (r *Rule) plain() *algorithm.Row { return algorithm.RowByName(r.Algorithm) }

// Takes returns why the algorithm does not take an option that most do.
func (r *Rule) Takes(option string) error {
	if why := r.plain().Lacks[option]; why != "" {
		return errors.New(why)
	}
	return nil
}

// Check returns what is wrong with the options that are not 0. It does not allocate
// unless something is.
func (r *Rule) Check() error {
	return cmp.Or(
		ofOption("resolution", r.Resolution != 0, func() error { return cmp.Or(CheckResolution(r.Resolution), r.FitsResolution()) }),
		ofOption("block", r.Block != 0, func() error { return cmp.Or(CheckBlock(r.Block), r.FitsBlock()) }),
		ofOption("lease", r.Lease != 0, func() error { return cmp.Or(CheckLease(r.Lease), r.FitsLease()) }),
		ofOption("reserve", r.Reserve != 0, func() error { return cmp.Or(CheckReserve(r.Reserve), r.FitsReserve()) }),
		ofOption("debt", r.Debt != "", r.FitsDebt),
		ofOption("period", r.Period, r.FitsPeriod),
		ofOption("keep", r.Keep != 0, func() error { return cmp.Or(CheckKeep(r.Keep), r.FitsKeep()) }),
		ofOption("ledger", r.Ledger, r.FitsLedger),
		ofOption("hold", r.Hold, r.FitsHold),
		ofOption("headroom", r.Shared, r.FitsShare),
	)
}

// ofOption returns what is wrong with an option that is given, with its name.
func ofOption(name string, given bool, check func() error) error {
	if !given {
		return nil
	}
	err := check()
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return err
}

// FitsShare returns what keeps the rule from being divided among shares.
func (r *Rule) FitsShare() error {
	if !r.plain().Meets(algorithm.Share) {
		return fmt.Errorf("%s gives room back in lumps, and who asks most often takes a lump: use a token-bucket or a leaky-bucket", r.Algorithm)
	}
	if r.Wait > 0 {
		return errors.New("calls that wait are in one line, in the order of their arrival, whoever they are of: remove wait")
	}
	if r.Lease > 0 {
		return errors.New("a process with a lease decides without knowing what others have used: remove lease")
	}
	return nil
}

// MostHeadroom returns the largest headroom of a bucket that is divided: 0 if it cannot be.
func MostHeadroom(burst, max int64) int64 { return min(burst/2, max) }

// Headroom returns the headroom in force: what is declared, or a quarter of the burst for -1.
func Headroom(declared, burst, limit int64) int64 {
	if declared < 0 {
		declared = max(1, burst/4)
	}
	return min(declared, MostHeadroom(burst, limit))
}

// FitsPeriod returns what keeps the rule from counting in periods of the calendar.
func (r *Rule) FitsPeriod() error {
	if !r.plain().Meets(algorithm.Period) {
		return fmt.Errorf("a period of the calendar is counted as a fixed-window is, and no %s: write algorithm=fixed-window, or a duration such as window=30d", r.Algorithm)
	}
	return nil
}

// CheckResolution returns what is wrong with a resolution by itself.
func CheckResolution(d time.Duration) error {
	if d <= 0 || d%time.Microsecond != 0 {
		return fmt.Errorf("%v is not a positive number of microseconds", d)
	}
	return nil
}

// FitsResolution returns what keeps the rule from its resolution.
func (r *Rule) FitsResolution() error {
	if r.Resolution > r.Window {
		return fmt.Errorf("%v is longer than the window of %v", r.Resolution, r.Window)
	}
	return nil
}

// CheckBlock returns what is wrong with a block by itself.
func CheckBlock(d time.Duration) error {
	if d < MinWindow || d > MaxWindow {
		return fmt.Errorf("%v is not between %v and 366d", d, MinWindow)
	}
	return nil
}

// FitsBlock returns what keeps the rule from its block.
func (r *Rule) FitsBlock() error {
	if r.Wait > 0 {
		return errors.New("a caller that waits for its turn is not refused, and so not blocked: remove block or wait")
	}
	return r.Takes("block")
}

// CheckLease returns what is wrong with a lease by itself.
func CheckLease(d time.Duration) error {
	if d < MinLease || d%time.Microsecond != 0 {
		return fmt.Errorf("%v is not a number of microseconds from %v on", d, MinLease)
	}
	return nil
}

// FitsLease returns what keeps the rule from its lease.
func (r *Rule) FitsLease() error {
	lacks := r.Takes("lease")
	if lacks != nil {
		return lacks
	}
	if r.Block > 0 {
		return errors.New("a block keeps a caller out of every process at once, and a process with a lease does not ask: remove lease or block")
	}
	if r.IsQueue() {
		return errors.New("calls that wait for a leaky-bucket are in one line: remove lease or wait, or use a token-bucket")
	}
	if r.Lease >= r.Window {
		return fmt.Errorf("%v is not shorter than the window of %v", r.Lease, r.Window)
	}
	return nil
}

// FitsHold returns what keeps calls of the rule from being held back.
func (r *Rule) FitsHold() error {
	if err := r.Takes("hold"); err != nil {
		return err
	}
	if r.Lease > 0 {
		return errors.New("a process with a lease does not ask, and so is not held back: remove lease or hold")
	}
	return nil
}
