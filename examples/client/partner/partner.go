// Package partner is the client of a partner that allows a number of calls a day.
package partner

import (
	"context"
	"net/http"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

// New returns a client of the partner at a host, which allows 10,000 calls a day and 10 a
// second. Calls in the background leave a fifth of the day's to others. A call that would
// have to wait for the next day fails at once, with a [*runtime.LimitedError] that says when.
func New(limiter *runtime.Limiter, host string) (*http.Client, error) {
	day := runtime.Rule{Name: "partner.day", Window: 24 * time.Hour, Max: 10_000, Algorithm: runtime.SlidingCounter, Fail: runtime.FailLocal}
	second := runtime.Rule{Name: "partner.second", Window: time.Second, Max: 10}
	transport, err := rateclient.New(limiter, []rateclient.Peer{{
		Pattern: host + "/",
		Limits: []rateclient.PeerLimit{
			{Rule: day, Share: share, Least: 100, Most: 10_000},
			{Rule: second, Margin: 200 * time.Millisecond},
		},
		Wait:    30 * time.Second,
		MaxHold: 24 * time.Hour,
	}})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport}, nil
}

type background struct{}

// Background returns a context for calls that nobody waits for.
func Background(ctx context.Context) context.Context {
	return context.WithValue(ctx, background{}, true)
}

// share returns which part of the limit a request may fill.
func share(r *http.Request) float64 {
	if r.Context().Value(background{}) != nil {
		return 0.8
	}
	return 1
}
