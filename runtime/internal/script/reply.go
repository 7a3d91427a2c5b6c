package script

import (
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// ErrReply is the error of a reply that take.lua cannot have made.
var ErrReply = private.New("the script's reply is not understood")

// A replyError is the error of one call, as the script replied it.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError marks the error as one that Redis replied, as in go-redis.
func (replyError) RedisError() {}

// The numbers that begin a part of the reply of take.lua, unless it begins with
// how much is left of a limit.
const (
	replyFailed  = -1
	replyLong    = -2
	replyBlocked = -3 // long, and the caller is blocked
	replyShadow  = -4 // a limit in shadow mode failed beside others
	longFields   = 7
)

// A reply is the part of a reply of take.lua that is not decoded yet.
type reply struct {
	clock int64
	rest  []int64
}

func newReply(numbers []int64) (reply, error) {
	if len(numbers) == 0 {
		return reply{}, ErrReply
	}
	return reply{numbers[0], numbers[1:]}, nil
}

// call decodes the part about one call, which stands for so many. It returns how
// many of them had room for their first limit.
func (r *reply) call(c *terms.Call, times int64) (admitted int64, err error) {
	if len(r.rest) >= 2 && r.rest[0] == replyFailed {
		c.Err, err = r.failure()
		return 0, err
	}
	c.Err = nil
	for i := range c.Charges {
		charge := &c.Charges[i]
		if charge.Err = nil; len(r.rest) >= 2 && r.rest[0] == replyShadow {
			failure, err := r.failure()
			if err != nil {
				return 0, err
			}
			charge.Err = failure
			continue
		}
		allowed, err := r.charge(&charge.Result, times)
		if err != nil {
			return 0, err
		}
		if i == 0 {
			admitted = allowed
		}
	}
	return admitted, nil
}

// failure decodes an error, whose first number says of what it is.
func (r *reply) failure() (failure, err error) {
	n := r.rest[1]
	if n < 0 || n > int64(len(r.rest))-2 {
		return nil, ErrReply
	}
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(r.rest[2+i])
	}
	r.rest = r.rest[2+n:]
	return explained(replyError(text)), nil
}

// charge decodes the part about one limit.
func (r *reply) charge(result *terms.Result, times int64) (allowed int64, err error) {
	n := r.rest
	switch {
	case len(n) >= 2 && n[0] >= 0:
		*result = terms.Result{Allowed: true, Remaining: n[0], ResetAfter: terms.Micros(n[1]), At: r.clock}
		if r.rest = n[2:]; n[1] < 0 {
			result.ResetAfter = terms.Micros(-n[1])
			return times, r.mark(result)
		}
		return times, nil
	case len(n) >= longFields && (n[0] == replyLong || n[0] == replyBlocked) && n[1] >= 0 && n[1] <= times:
		r.rest = n[longFields:]
		*result = terms.Result{
			Allowed:    n[1] > 0,
			Remaining:  n[2],
			RetryAfter: terms.Micros(n[3]),
			ResetAfter: terms.Micros(n[4]),
			At:         n[5],
			Delay:      terms.Micros(n[6]),
			Blocked:    n[0] == replyBlocked,
		}
		if result.At < 0 {
			result.At = -result.At
			return n[1], r.mark(result)
		}
		return n[1], nil
	}
	return 0, ErrReply
}

// mark decodes the mark that follows.
func (r *reply) mark(result *terms.Result) error {
	if len(r.rest) == 0 || r.rest[0] <= 0 {
		return ErrReply
	}
	result.Mark, r.rest = r.rest[0], r.rest[1:]
	return nil
}
