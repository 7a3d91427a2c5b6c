package private

import (
	"errors"
)

// ErrInvalidOverrides is runtime.ErrInvalidOverrides, which says what it means.
var ErrInvalidOverrides = errors.New("invalid overrides")

// InvalidOverrides returns an error that is both err and ErrInvalidOverrides: the source was read,
// and its content is invalid.
func InvalidOverrides(err error) error {
	cause := err
	if brief := (*Error)(nil); errors.As(err, &brief) && brief.Full() != nil {
		cause = brief.Full()
	}
	return Because(err.Error(), invalid{cause})
}

type invalid struct{ error }

func (invalid) Is(target error) bool { return target == ErrInvalidOverrides }

func (i invalid) Unwrap() error { return i.error }

// A Stale is the error of a source that cannot be read now, and that returns the last
// valid overrides, without those that have expired since. A limiter puts these overrides
// in force and reports the error.
type Stale struct{ Err error }

func (s *Stale) Error() string { return s.Err.Error() }

func (s *Stale) Unwrap() error { return s.Err }
