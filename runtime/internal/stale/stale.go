// Package stale has what a limiter and the sources of its overrides agree on,
// and no source of a user's needs.
package stale

import (
	"errors"

	"github.com/rategen/rategen/runtime/internal/private"
)

// ErrInvalid is runtime.ErrInvalidOverrides, which says what it means.
var ErrInvalid = errors.New("invalid overrides")

// Invalid returns err as one that is ErrInvalid, too: the source was read, and what it
// says is of no use.
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

// An Error is the error of a source that is of no use now, and that returns what
// it last understood all the same: without the overrides whose time has ended
// since. A limiter puts that in force, and reports the error.
type Error struct{ Err error }

// Error returns the text of the error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *Error) Unwrap() error { return e.Err }
