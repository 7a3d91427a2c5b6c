// Package priority keeps a part of one limit for what is important.
package priority

import "context"

//go:generate go tool rategen

// A Priority is how important a request is. The zero value is the lowest.
type Priority int

// Priorities.
const (
	Low Priority = iota
	Normal
	High
)

// A Request is what a tenant asks.
type Request struct {
	Tenant   string
	Priority Priority
}

// Orders is the service.
type Orders interface {
	// Submit accepts an order.
	//
	//ratelimit:key=#req.Tenant window=1m max=share(#req.Priority) name=orders.submit
	Submit(ctx context.Context, req Request) error
}

// share returns how far a priority may fill the limit that all of them share.
func share(p Priority) int64 {
	const all = 100
	switch p {
	case High:
		return all
	case Normal:
		return all * 90 / 100
	default:
		return all * 80 / 100
	}
}
