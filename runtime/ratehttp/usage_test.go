package ratehttp_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// usagesOf returns a function that finds the usages of the user in the query.
func usagesOf(limiter *runtime.Limiter, rules ...*runtime.Rule) func(*http.Request) ([]runtime.Usage, error) {
	return func(r *http.Request) ([]runtime.Usage, error) {
		var limits []runtime.Limit
		for _, rule := range rules {
			limits = append(limits, rule.Limit(runtime.NewKey().AddString(r.URL.Query().Get("user"))))
		}
		return limiter.Usage(r.Context(), limits...)
	}
}

// An error tells its status, and no more than a refusal may.
func TestUsageFails(t *testing.T) {
	gone := runtime.New(nil, runtime.WithLogger(silent))
	for _, test := range []struct {
		left func(*http.Request) ([]runtime.Usage, error)
		want int
	}{
		{usagesOf(gone, &runtime.Rule{Name: "secret", Window: time.Minute, Max: 1}), 503},
		{usagesOf(newLimiter(), &runtime.Rule{Name: "secret"}), 500},
		{func(*http.Request) ([]runtime.Usage, error) { return nil, statusError(401) }, 401},
		{func(*http.Request) ([]runtime.Usage, error) { return nil, statusError(200) }, 500},
		{func(*http.Request) ([]runtime.Usage, error) { return nil, errors.New("secret") }, 500},
	} {
		resp := answerOf(ratehttp.Usage(test.left))
		if body := bodyOf(t, resp); resp.StatusCode != test.want || strings.Contains(body, "secret") || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("got %d %v %q, want %d", resp.StatusCode, resp.Header, body, test.want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("no function, and no panic")
		}
	}()
	ratehttp.Usage(nil)
}
