// Package shop is a service with five limits of different kinds. It is what somebody
// writes who has read the documentation only; .ci/stranger makes it a module of its
// own, and runs its tests.
package shop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// Shop sells things.
type Shop interface {
	// Order orders an item for a customer.
	//
	//ratelimit:key=#customer window=1h max=5 message="five orders an hour are enough"
	Order(ctx context.Context, customer, item string) (id string, err error)

	// Search returns the items that match a query. Long queries cost more.
	//
	//ratelimit:key=#customer window=1m max=60 algorithm=token-bucket burst=20 cost=1+len(#query)/10
	Search(ctx context.Context, customer, query string) ([]string, error)

	// Ship hands an order to the courier, who takes one every ten seconds.
	//
	//ratelimit:key=`"all"` window=1m max=6 algorithm=leaky-bucket wait=1m
	Ship(ctx context.Context, id string) error

	// Export writes the books. Two exports may run at a time, and a customer's
	// failed ones do not count for the day.
	//
	//ratelimit:algorithm=concurrency max=2 name=shop.export.running
	//ratelimit:key=#customer window=24h max=1 refund="#err != nil" fail=closed name=shop.export.daily
	Export(ctx context.Context, customer string, write func() error) error
}

// Pages are the handlers of the shop's pages.
type Pages interface {
	// Front shows the front page.
	//
	//ratelimit:key=ratehttp.ClientIP(#r.Context()) window=1s max=3 deny=busy(#w,#r,#err)
	Front(w http.ResponseWriter, r *http.Request)
}

// busy answers a request that is refused with a page of the shop's own, after the
// fields that clients know.
func busy(w http.ResponseWriter, r *http.Request, err error) {
	ratehttp.Deny(w, r, err)
}

// ErrSoldOut is the error of an order for what is not there.
var ErrSoldOut = errors.New("sold out")

// A Store is a Shop that knows no limits.
type Store struct {
	mu      sync.Mutex
	ordered int
	shipped []string
}

func (s *Store) Order(_ context.Context, customer, item string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ordered++
	return fmt.Sprintf("%s-%s-%d", customer, item, s.ordered), nil
}

func (s *Store) Search(_ context.Context, _, query string) ([]string, error) {
	return []string{query + " in blue"}, nil
}

func (s *Store) Ship(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shipped = append(s.shipped, id)
	return nil
}

func (s *Store) Export(_ context.Context, _ string, write func() error) error { return write() }

// Front shows a greeting.
func (s *Store) Front(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "welcome") }

// Handler serves the pages of a shop.
func Handler(pages Pages, limiter *runtime.Limiter) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", NewRateLimitedPages(pages, limiter).Front)
	return ratehttp.Middleware()(mux)
}

// OrderAll orders items until one is refused, and returns how many were ordered.
func OrderAll(ctx context.Context, shop Shop, customer string, items []string) (int, error) {
	for i, item := range items {
		if _, err := shop.Order(ctx, customer, item); err != nil {
			return i, err
		}
	}
	return len(items), nil
}
