package script

import (
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

// ErrReply is the error of a reply that take.lua cannot have made.
var ErrReply = private.New("the script's reply is not understood")

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

// call decodes the part about one call, which stands for so many, and was looked at only or
// not. It returns how many of them had room for their first limit.
func (r *reply) call(c *terms.Call, times int64, peek bool) (admitted int64, err error) {
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
		if peek && charge.Keep > 0 {
			if err := r.past(&charge.Result); err != nil {
				return 0, err
			}
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
	return explained(rediswire.Reply(text)), nil
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

// past decodes the part about former periods that follows.
func (r *reply) past(result *terms.Result) error {
	const head, each = 3, 3
	n := r.rest
	if len(n) < head || n[0] < 0 || n[1] <= n[0] || n[2] < 0 || n[2] > int64(len(n)-head)/each {
		return ErrReply
	}
	p := &terms.Past{Begin: n[0], End: n[1]}
	end := head + each*int(n[2])
	for c := n[head:end]; len(c) > 0; c = c[each:] {
		p.Counts = append(p.Counts, terms.Count{Begin: c[0], End: c[1], Used: c[2]})
	}
	result.Past, r.rest = p, n[end:]
	return nil
}

// NotNow reports whether a server has replied that it cannot execute anything
// for a while: it is starting, or there is a failover. The script was not
// executed.
func NotNow(err error) bool {
	for _, prefix := range []string{"CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY"} {
		if rediswire.Replied(err, prefix) {
			return true
		}
	}
	return false
}

// Answered reports whether the outcome of a command is an answer of the server,
// if only an error: all but no answer, and that it cannot execute anything now.
func Answered(err error) bool { return err == nil || Replied(err) && !NotNow(err) }

// TryAgain reports whether a server of a cluster has not executed the script
// since the slot is on the move and the keys lie on two servers.
func TryAgain(err error) bool { return rediswire.Replied(err, "TRYAGAIN") }

// Elsewhen reports whether the server has decided nothing, since its clock shows another
// period of a calendar than the execution was filled in for, and returns what it shows.
func Elsewhen(err error) (clock int64, ok bool) {
	var reply rediswire.ReplyError
	if !rediswire.Replied(err, "PERIOD") || !errors.As(err, &reply) {
		return 0, false
	}
	_, rest, _ := strings.Cut(reply.Error(), "PERIOD ")
	text, _, _ := strings.Cut(rest, " ")
	clock, failed := strconv.ParseInt(text, 10, 64)
	return clock, failed == nil
}

// NotSent reports whether err proves that the script did not leave the process,
// for lack of a connection.
func NotSent(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.Is(err, rediswire.ErrNotSent)
}

// Moved reports whether the key is on another server of a cluster.
func Moved(err error) bool {
	return rediswire.Replied(err, "MOVED") || rediswire.Replied(err, "ASK")
}

// Redirection returns the address of the server that a server has sent the
// script to, and whether that is to be asked first since the slot is still on
// the move. It returns "" if the error names none.
func Redirection(err error) (address string, ask bool) {
	if !Moved(err) {
		return "", false
	}
	var reply rediswire.ReplyError
	errors.As(err, &reply)
	words := strings.Fields(reply.Error())
	return words[len(words)-1], rediswire.Replied(err, "ASK")
}

// Unknown reports whether the server does not have the script.
func Unknown(err error) bool { return rediswire.Replied(err, "NOSCRIPT") }

// Forbidden reports whether the server has not executed the script because its
// user may not touch one of the keys. The text differs between versions; that
// about a command which the user may not run names no key.
func Forbidden(err error) bool {
	return err != nil && rediswire.Replied(err, "NOPERM") &&
		(strings.Contains(err.Error(), " a key") || strings.Contains(err.Error(), " the keys"))
}

// Replied reports whether err is one that Redis replied.
func Replied(err error) bool {
	return rediswire.Replied(err, "")
}

// Unscripted reports whether the server runs no Lua scripts: it does not know the command,
// or the language.
func Unscripted(err error) bool {
	if !Replied(err) {
		return false
	}
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "unknown command") && strings.Contains(text, "eval") ||
		strings.Contains(text, "could not find scripting engine")
}

// Undeclared reports whether the server forbids scripts keys that the script names.
func Undeclared(err error) bool {
	return Replied(err) && strings.Contains(err.Error(), "undeclared key")
}

// explained returns an error as [private.Hide] does, and adds what follows from it where the
// server's words do not tell.
func explained(err error) error {
	if err == nil {
		return nil
	}
	clean := private.Hide(err)
	switch {
	case Unscripted(err):
		return private.Because(clean.Error()+": the server runs no Lua scripts, which decide limits", err)
	case Undeclared(err):
		return private.Because(clean.Error()+": the server does not let scripts use the keys that they name", err)
	}
	return clean
}
