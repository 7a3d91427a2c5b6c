package script

import (
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rediswire"
)

// ErrReply is the error of a reply that take.lua cannot have made.
var ErrReply = private.New("the script's reply is not understood")

// ErrPanicked is the error of calls whose client has panicked.
var ErrPanicked = private.New("the redis client panicked, in one of its hooks perhaps")

// readFailure decodes an error, whose first number says of what it is.
func (r *reply) readFailure() (failure, err error) {
	n := r.numbers[1]
	if n < 0 || n > int64(len(r.numbers))-2 {
		return nil, ErrReply
	}
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(r.numbers[2+i])
	}
	r.numbers = r.numbers[2+n:]
	return explain(rediswire.Reply(text)), nil
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

// Lacks reports whether the server has none of the name of a command that the script calls.
func Lacks(err error) bool {
	return Replied(err) && strings.Contains(err.Error(), "Unknown ") && strings.Contains(err.Error(), "called from ")
}

// Undeclared reports whether the server forbids scripts keys that the script names.
func Undeclared(err error) bool {
	return Replied(err) && strings.Contains(err.Error(), "undeclared key")
}

// explain returns an error as [private.Hide] does, and adds what follows from it where the
// server's words do not tell.
func explain(err error) error {
	clean := private.Hide(err)
	if Unscripted(err) {
		return private.Because(clean.Error()+": the server runs no Lua scripts, which decide limits", err)
	}
	if Lacks(err) {
		return private.Because(clean.Error()+": the server does not have a command that decides limits, or has renamed it", err)
	}
	if Undeclared(err) {
		return private.Because(clean.Error()+": the server does not let scripts use the keys that they name", err)
	}
	return clean
}
