// Package twirpapi limits a service of twirp.
package twirpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/twitchtv/twirp"
	"github.com/twitchtv/twirp/example"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// Hats repeats the methods of [example.Haberdasher], which twirp generates.
type Hats interface {
	// MakeHat makes a hat.
	//
	//ratelimit:key=#size.GetInches() window=1h max=1
	MakeHat(ctx context.Context, size *example.Size) (*example.Hat, error)
}

// asTwirp gives refusals the codes of which twirp makes 429 and 503.
func asTwirp(_ context.Context, err error) error {
	if _, ok := errors.AsType[*runtime.LimitedError](err); ok {
		return twirp.WrapError(twirp.NewError(twirp.ResourceExhausted, err.Error()), err)
	}
	return twirp.WrapError(twirp.NewError(twirp.Unavailable, "try again later"), err)
}

// newHandler returns a server whose clients learn when to come back. Its limiter has
// runtime.WithRefusalError(asTwirp).
func newHandler(hats Hats, limiter *runtime.Limiter) http.Handler {
	return ratehttp.Middleware()(example.NewHaberdasherServer(NewRateLimitedHats(hats, limiter)))
}
