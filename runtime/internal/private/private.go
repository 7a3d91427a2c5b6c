// Package private keeps callers' keys and servers' addresses out of the texts of
// errors. These texts end up in logs, in traces and in answers to clients. The cause of an
// error may hold keys and addresses; [errors.Unwrap] returns it.
package private

import "fmt"

// An Error is an error whose text holds nothing private. Its cause may hold more.
type Error struct {
	text  string
	cause error
}

func (e *Error) Error() string { return e.text }

func (e *Error) Unwrap() error { return e.cause }

// Full returns the cause, for commands whose user may read everything. They find it by
// [errors.As].
func (e *Error) Full() error { return e.cause }

// New returns an error with a text that holds nothing private.
func New(text string) error { return &Error{text: text} }

// Because returns an error with a text that holds nothing private, and with a cause that may.
func Because(text string, cause error) error { return &Error{text, cause} }

// A Text is one that is private, such as a key.
type Text string

// hidden stands for a private text.
const hidden = "…"

// Errorf is [fmt.Errorf] for errors about private texts. The error's text hides each [Text]
// among args, and the causes of each [Error] among them. The error's cause shows all of
// these. The caller guarantees that no other argument is private.
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

// Hide returns an error with a text that holds nothing private, and with err as its cause.
// The text is made of the parts of err that are known to be harmless. Hide returns err itself
// if all of err is.
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
