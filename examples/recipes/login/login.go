// Package login protects log-ins from guessing.
package login

import (
	"context"
	"errors"
	"strings"

	"github.com/rategen/rategen/runtime"
)

//go:generate go tool rategen
//ratelimit:import "github.com/rategen/rategen/runtime/ratehttp"

// ErrWrong is the error of a user that there is not, and of a wrong password.
var ErrWrong = errors.New("wrong user or password")

// Accounts is the service.
type Accounts interface {
	// LogIn returns the token of a session.
	//
	//ratelimit:key=account(#user) window=15m max=5 block=1h refund=!wrong(#err) fail=local name=login.user
	//ratelimit:key=ratehttp.ClientIP(#ctx) window=15m max=50 block=1h refund=!wrong(#err) fail=local name=login.address
	LogIn(ctx context.Context, user, password string) (token string, err error)
}

// account returns the one spelling of a user's name that accounts are found by.
func account(user string) string { return strings.ToLower(strings.TrimSpace(user)) }

// wrong reports whether a log-in has failed by what the caller sent.
func wrong(err error) bool { return errors.Is(err, ErrWrong) }

// Unlock ends a user's block, and forgets the failures.
func Unlock(ctx context.Context, limiter *runtime.Limiter, user string) error {
	return limiter.Reset(ctx, accountsLogInLimit.Limit(runtime.NewKey().AddString(account(user))))
}
