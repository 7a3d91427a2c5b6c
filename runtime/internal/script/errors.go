package script

import (
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/private"
)

// NotNow reports whether a server has replied that it cannot execute anything
// for a while: it is starting, or there is a failover. The script was not
// executed.
func NotNow(err error) bool {
	for _, prefix := range []string{"CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY"} {
		if redis.HasErrorPrefix(err, prefix) {
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
func TryAgain(err error) bool { return redis.HasErrorPrefix(err, "TRYAGAIN") }

// NotSent reports whether err proves that the script did not leave the process,
// for lack of a connection.
func NotSent(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial" ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted)
}

// Moved reports whether the key is on another server of a cluster.
func Moved(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")
}

// Redirection returns the address of the server that a server has sent the
// script to, and whether that is to be asked first since the slot is still on
// the move. It returns "" if the error names none.
func Redirection(err error) (address string, ask bool) {
	if !Moved(err) {
		return "", false
	}
	var reply redis.Error
	errors.As(err, &reply)
	words := strings.Fields(reply.Error())
	return words[len(words)-1], redis.HasErrorPrefix(err, "ASK")
}

// Unknown reports whether the server does not have the script.
func Unknown(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }

// Forbidden reports whether the server has not executed the script because its
// user may not touch one of the keys. The text differs between versions; that
// about a command which the user may not run names no key.
func Forbidden(err error) bool {
	return err != nil && redis.HasErrorPrefix(err, "NOPERM") &&
		(strings.Contains(err.Error(), " a key") || strings.Contains(err.Error(), " the keys"))
}

// Replied reports whether err is one that Redis replied.
func Replied(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// Clean hides what an error says of callers' keys, which servers quote, and of servers'
// addresses: errors end up in logs.
func Clean(err error) error { return private.Hide(err) }

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

// explained returns an error as [Clean] does, and adds what follows from it where the
// server's words do not tell.
func explained(err error) error {
	clean := Clean(err)
	switch {
	case err == nil:
		return nil
	case Unscripted(err):
		return private.Because(clean.Error()+": the server runs no Lua scripts, which decide limits", err)
	case Undeclared(err):
		return private.Because(clean.Error()+": the server does not let scripts use the keys that they name", err)
	}
	return clean
}
