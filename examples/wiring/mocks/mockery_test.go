package mocks

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/mock"

	"github.com/rategen/rategen/examples/wiring/mocks/mockery"
	"github.com/rategen/rategen/examples/wiring/quotes"
	"github.com/rategen/rategen/runtime"
)

// The same with a mock of mockery.
func TestMockery(t *testing.T) {
	plain := mockery.NewMockQuotes(t)
	plain.EXPECT().Price(mock.Anything, "ACME").Return(100, nil).Times(3)
	limiter := runtime.New(runtime.NewMemoryStore())
	t.Cleanup(func() { limiter.Close() })
	limited := quotes.NewRateLimitedQuotes(plain, limiter)
	for i := range 4 {
		if _, err := limited.Price(t.Context(), "ACME"); errors.Is(err, runtime.ErrLimited) != (i == 3) {
			t.Errorf("call %d: error %v", i+1, err)
		}
	}
}
