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

// ratesOnly is for options that change the charge of a call that is over.
func ratesOnly(s *Settings) error {
	if s.Algorithm() == Concurrency {
		return errors.New("a permit of concurrency comes back with every return: remove the option, or write it on a second limit, of the rate")
	}
	return nil
}
