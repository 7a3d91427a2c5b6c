// Package stale holds the errors by which this module's sources of overrides tell a limiter
// what they read. Sources that users write do not need them.
package stale

import (
	"errors"

	"github.com/rategen/rategen/runtime/internal/private"
)

// ErrInvalid is runtime.ErrInvalidOverrides, which says what it means.
var ErrInvalid = errors.New("invalid overrides")

// Invalid returns an error that is both err and ErrInvalid: the source was read, and its
// content is invalid.
func Invalid(err error) error {
	cause := err
	if brief := (*private.Error)(nil); errors.As(err, &brief) && brief.Full() != nil {
		cause = brief.Full()
	}
	return private.Because(err.Error(), invalid{cause})
}

type invalid struct{ error }

func (invalid) Is(target error) bool { return target == ErrInvalid }

func (e invalid) Unwrap() error { return e.error }

// An Error is the error of a source that cannot be read now, and that returns the last
// valid overrides, without those that have expired since. A limiter puts these overrides
// in force and reports the error.
type Error struct{ Err error }

// Error returns the text of the error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *Error) Unwrap() error { return e.Err }
