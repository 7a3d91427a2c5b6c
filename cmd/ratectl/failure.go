package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The exit codes.
const (
	done        = 0
	failed      = 1
	wrongUsage  = 2
	nothing     = 3
	unconfirmed = 4
	interrupted = 130 // as of a shell
)

// A failure is an error with an exit code of its own.
type failure struct {
	code int
	text string
}

func (f failure) Error() string { return f.text }

func usagef(format string, args ...any) error {
	return failure{wrongUsage, fmt.Sprintf(format, args...)}
}

func nothingf(format string, args ...any) error {
	return failure{nothing, fmt.Sprintf(format, args...)}
}

// codeOf returns the exit code for an error.
func codeOf(err error) int {
	var f failure
	switch {
	case err == nil:
		return done
	case errors.As(err, &f):
		return f.code
	}
	return failed
}

// inFull returns an error with what package runtime keeps out of texts, callers' keys
// and servers' addresses: here they are the operator's own.
func inFull(err error) error {
	var brief interface{ Full() error }
	for errors.As(err, &brief) {
		full := brief.Full()
		if full == nil {
			break
		}
		err = full
	}
	return err
}

// A foreign error is none of Redis's.
type foreign struct{ error }

func (f foreign) Unwrap() error { return f.error }

// hasReply reports whether an error is one that Redis has replied, and begins with
// a word.
func hasReply(err error, word string) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), word)
}
