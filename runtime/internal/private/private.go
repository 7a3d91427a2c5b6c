// Package private keeps callers' keys and servers' addresses out of the texts of
// errors. Texts end up in logs, in traces and in answers to clients, where others read
// them. The cause of an error may say all; [errors.Unwrap] leads to it.
package private

import "fmt"

// An Error is an error whose text says nothing private. Its cause may.
type Error struct {
	text  string
	cause error
}

// Error returns the text.
func (e *Error) Error() string { return e.text }

// Unwrap returns the cause, or nil if the text says all.
func (e *Error) Unwrap() error { return e.cause }

// Full returns the cause, for commands whose user may read everything. They find it by
// [errors.As].
func (e *Error) Full() error { return e.cause }

// New returns an error of a text that says nothing private.
func New(text string) error { return &Error{text: text} }

// Because returns an error of a text that says nothing private, with a cause that may.
func Because(text string, cause error) error { return &Error{text, cause} }

// A Text is one that is private, such as a key.
type Text string

// hidden stands for a private text.
const hidden = "…"

// Errorf is [fmt.Errorf] for an error that is about private texts: its text hides them,
// and those of the errors among args, and its cause says them. The caller vouches for
// all other args.
func Errorf(format string, args ...any) error {
	shown, full := make([]any, len(args)), make([]any, len(args))
	for i, arg := range args {
		shown[i], full[i] = arg, arg
		switch arg := arg.(type) {
		case Text:
			shown[i], full[i] = hidden, string(arg)
		case *Error:
			if arg.cause != nil {
				full[i] = arg.cause
			}
		}
	}
	return &Error{fmt.Errorf(format, shown...).Error(), fmt.Errorf(format, full...)}
}

// Hide returns err with a text that says nothing private: what is known of it without
// its own text, unless that is known to be harmless. Its cause is err.
func Hide(err error) error {
	switch err.(type) {
	case nil, *Error:
		return err
	}
	if harmless(err) {
		return err
	}
	return &Error{textOf(err), err}
}
