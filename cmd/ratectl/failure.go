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
	if f, is := errors.AsType[failure](err); is {
		return f.code
	}
	if err != nil {
		return failed
	}
	return done
}

// inFull returns an error with what package runtime keeps out of texts, callers' keys
// and servers' addresses: here they are the operator's own.
func inFull(err error) error {
	for {
		brief, is := errors.AsType[interface {
			error
			Full() error
		}](err)
		if !is || brief.Full() == nil {
			return err
		}
		err = brief.Full()
	}
}

// A foreign error is none of Redis's.
type foreign struct{ error }

func (f foreign) Unwrap() error { return f.error }

// hasReply reports whether an error is one that Redis has replied, and begins with
// a word.
func hasReply(err error, word string) bool {
	reply, is := errors.AsType[redis.Error](err)
	return is && strings.HasPrefix(reply.Error(), word)
}
