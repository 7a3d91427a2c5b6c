// Package plan limits customers to what they buy: so many requests a month from their
// billing day on, and no more than so many a second.
package plan

import "context"

//go:generate go tool rategen

// A Customer is who calls, as the authentication has found out.
type Customer struct {
	ID         string
	Monthly    int64  // requests
	PerSecond  int64  // requests
	Zone       string // an IANA name, from a list that the customer chose of
	BillingDay int    // of the month
}

// Search is the service.
type Search interface {
	// Find returns what matches a query.
	//
	//ratelimit:key=#c.ID window=1s max=#c.PerSecond name=plan.second
	//ratelimit:key=#c.ID window=month tz=#c.Zone anchor=#c.BillingDay max=#c.Monthly keep=3 fail=local refund="#err != nil" name=plan.month usage=on
	Find(ctx context.Context, c Customer, query string) ([]string, error)
}
