package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
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

// explained returns an error of Redis's with its remedy.
func (o *options) explained(err error) error {
	err = inFull(err)
	var f failure
	switch {
	case err == nil || errors.As(err, &f):
		return err
	case hasReply(err, "NOAUTH"):
		return fmt.Errorf("redis wants a password: set RATECTL_PASSWORD, or name a file with -password-file: %w", err)
	case hasReply(err, "WRONGPASS"):
		return fmt.Errorf("redis refuses the user or the password: check -user, and RATECTL_PASSWORD or -password-file: %w", err)
	case hasReply(err, "NOPERM"):
		return fmt.Errorf("redis does not allow the user %q to do this: see the rights in docs/ratectl.md: %w", o.user, err)
	case hasReply(err, "READONLY"):
		return fmt.Errorf("redis at %s is a replica: name its master with -redis, or the Sentinels with -sentinel: %w", o.redis, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("redis at %s gave no answer within %v, see -timeout: %w", o.redis, o.timeout, err)
	case hasReply(err, "MOVED") || hasReply(err, "CROSSSLOT"):
		return fmt.Errorf("redis is a cluster: add -cluster: %w", err)
	case runtime.ClassOf(err) == runtime.ClassDial || runtime.ClassOf(err) == runtime.ClassConnection:
		return fmt.Errorf("redis at %s: %w", o.redis, err)
	}
	return err
}

// hasReply reports whether an error is one that Redis has replied, and begins with
// a word.
func hasReply(err error, word string) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), word)
}
