package ratefasthttp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/rategen/rategen/internal/testkit/wire"
	"github.com/rategen/rategen/runtime/ratefasthttp"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// A handler that writes nothing after a refusal has not answered; one that writes anything has. Its
// own time to come back, and the older fields of a stricter server behind it, stay.
func TestAnswers(t *testing.T) {
	service := wire.NewService(t)
	for name, test := range map[string]struct {
		answer        func(*fasthttp.RequestCtx)
		calls, status int
		fields        map[string]string
	}{
		"nothing":  {func(*fasthttp.RequestCtx) {}, 2, 429, nil},
		"a body":   {func(c *fasthttp.RequestCtx) { c.SetBodyString("cached") }, 2, 200, nil},
		"a status": {func(c *fasthttp.RequestCtx) { c.SetStatusCode(204) }, 2, 204, nil},
		"a stream": {func(c *fasthttp.RequestCtx) { c.SetBodyStream(strings.NewReader("cached"), -1) }, 2, 200, nil},
		"a stricter server's": {func(c *fasthttp.RequestCtx) {
			for name, value := range map[string]string{"Retry-After": "7", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"} {
				c.Response.Header.Set(name, value)
			}
			c.SetStatusCode(429)
		}, 1, 429, map[string]string{"Retry-After": "7", "X-RateLimit-Reset": "99999999999"}},
	} {
		var c fasthttp.RequestCtx
		var request fasthttp.Request
		request.SetRequestURI("/")
		c.Init(&request, nil, nil)
		err := ratefasthttp.Serve(&c, t.Context(), ratehttp.Middleware(ratehttp.WithLegacyFields()), func(r *http.Request) error {
			for range test.calls {
				_, _ = service.Show(r.Context(), name)
			}
			test.answer(&c)
			return nil
		}, nil)
		header := &c.Response.Header
		if err != nil || c.Response.StatusCode() != test.status || len(header.Peek("RateLimit")) == 0 {
			t.Errorf("%s: %v, %s", name, err, &c.Response)
		}
		for field, want := range test.fields {
			if got := string(header.Peek(field)); got != want {
				t.Errorf("%s: %s is %q, want %q", name, field, got, want)
			}
		}
	}
}
