package directive

import (
	"errors"
	"fmt"
	"time"
)

// These functions return the fits column of a row of Options.

func resolutionFits(s *Settings) error {
	if resolution := get[time.Duration](s, "resolution"); resolution > s.Window() {
		return fmt.Errorf("%s is longer than the window", ShortDuration(resolution))
	}
	return nil
}

func blockFits(s *Settings) error {
	switch {
	case s.IsShadow():
		return errors.New("mode=shadow refuses nobody, so nobody can be blocked: remove one of the two")
	case get[time.Duration](s, "wait") > 0:
		return errors.New("a caller that waits for its turn is not denied, and so not blocked: remove block or wait")
	case s.Algorithm() == Concurrency:
		return errors.New("calls in flight end at any time, so concurrency blocks nobody: write block on a second limit, of the rate")
	}
	return nil
}

func leaseFits(s *Settings) error {
	lease, algorithm := s.Lease(), s.Algorithm()
	switch {
	case algorithm == Concurrency:
		return errors.New("permits of concurrency come back with every return, so none are charged ahead: remove lease, or write it on a second limit, of the rate")
	case get[time.Duration](s, "block") > 0:
		return errors.New("a block keeps a caller out of every process at once, and a process with a lease does not ask: remove lease or block")
	case algorithm == leakyBucket && s.Waits():
		return errors.New("calls that wait for a leaky-bucket are in one line: remove lease or wait, or write algorithm=token-bucket")
	case lease >= s.Window():
		return fmt.Errorf("%s is not shorter than the window of %s", ShortDuration(lease), ShortDuration(s.Window()))
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

// ratesOnly is for options that change the charge of a call that is over.
func ratesOnly(s *Settings) error {
	if s.Algorithm() == Concurrency {
		return errors.New("a permit of concurrency comes back with every return: remove the option, or write it on a second limit, of the rate")
	}
	return nil
}
