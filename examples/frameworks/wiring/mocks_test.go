package wiring

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/mock/gomock"

	mocks "github.com/rategen/rategen/examples/frameworks/wiring/mocks/gomock"
	"github.com/rategen/rategen/examples/frameworks/wiring/quotes"
	"github.com/rategen/rategen/runtime"
)

// A mock below the limit shows which calls pass.
func TestBelowTheLimit(t *testing.T) {
	plain := mocks.NewMockQuotes(gomock.NewController(t))
	plain.EXPECT().Price(gomock.Any(), "ACME").Return(100, nil).Times(3)
	limiter := runtime.New(runtime.NewMemoryStore())
	t.Cleanup(func() { limiter.Close() })
	limited := quotes.NewRateLimitedQuotes(plain, limiter)
	for range 3 {
		if price, err := limited.Price(t.Context(), "ACME"); price != 100 || err != nil {
			t.Fatal(price, err)
		}
	}
	if _, err := limited.Price(t.Context(), "ACME"); !errors.Is(err, runtime.ErrLimited) {
		t.Errorf("error %v, want a refusal", err)
	}
}

// A mock in place of the limited service refuses when the test says so.
func TestInPlaceOfTheLimit(t *testing.T) {
	service := mocks.NewMockQuotes(gomock.NewController(t))
	service.EXPECT().Price(gomock.Any(), gomock.Any()).Return(0, &runtime.LimitedError{Rule: "quotes.Quotes.Price", RetryAfter: 1})
	if got := show(t.Context(), service); got != "come back later" {
		t.Errorf("shows %q", got)
	}
}

// show is code that uses the service.
func show(ctx context.Context, q quotes.Quotes) string {
	if _, err := q.Price(ctx, "ACME"); errors.Is(err, runtime.ErrLimited) {
		return "come back later"
	}
	return "a price"
}
