// Package shadow tries a limit out before it refuses anybody.
package shadow

import (
	"context"
	"expvar"

	"github.com/rategen/rategen/runtime/observe"
)

//go:generate go tool rategen

// Search is the service.
type Search interface {
	// Find returns what fits a query.
	//
	//ratelimit:key=#user window=1m max=5 mode=shadow name=search.user
	Find(ctx context.Context, user, query string) ([]string, error)
}

// Count returns an observer that counts calls by rule and verdict: search.user.admitted,
// and search.user.shadow_refused for those that an enforced limit would refuse.
func Count(calls *expvar.Map) *observe.Observer {
	return &observe.Observer{Decision: func(_ context.Context, ev observe.DecisionEvent) {
		calls.Add(ev.Rule+"."+ev.Verdict.String(), 1)
	}}
}
