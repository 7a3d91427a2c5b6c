// Package stale has what a limiter and the sources of its overrides agree on,
// and no source of a user's needs.
package stale

// An Error is the error of a source that could not be read, and that returns what
// it last understood all the same: without the overrides whose time has ended
// since. A limiter puts that in force, and reports the error.
type Error struct{ Err error }

// Error returns the text of the error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *Error) Unwrap() error { return e.Err }
