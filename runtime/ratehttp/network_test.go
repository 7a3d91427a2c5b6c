package ratehttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// A peer of another transport.
type remote struct {
	addr  string
	lines map[string][]string
}

func (r remote) Addr() string                { return r.addr }
func (r remote) Header(name string) []string { return r.lines[strings.ToLower(name)] }

// Calls of another transport have clients as requests do.
func TestClients(t *testing.T) {
	var networks ratehttp.Networks
	networks.Refuse(netip.MustParsePrefix("203.0.113.66/32"))
	networks.Exempt(netip.MustParsePrefix("203.0.113.9/32"))
	clients := ratehttp.NewClients(proxies(ratehttp.XForwardedFor).(ratehttp.ClientOption), ratehttp.WithNetworks(&networks), ratehttp.WithLogger(silent))
	limiter := newLimiter()
	none := &runtime.Rule{Name: "x", Window: time.Hour}
	for _, c := range []struct {
		peer   remote
		want   string
		err    error
		exempt bool
	}{
		{remote{addr: "203.0.113.7:5"}, "203.0.113.7", nil, false},
		{remote{proxy, map[string][]string{"x-forwarded-for": {"203.0.113.7"}}}, "203.0.113.7", nil, false},
		{remote{}, "unknown", nil, false},
		{remote{addr: "203.0.113.66:5"}, "", ratehttp.ErrNetworkRefused, false},
		{remote{addr: "203.0.113.9:5"}, "203.0.113.9", nil, true},
	} {
		ctx, err := clients.Begin(t.Context(), c.peer)
		if !errors.Is(err, c.err) {
			t.Errorf("%v: %v", c.peer, err)
		}
		if err != nil {
			continue
		}
		if got := ratehttp.ClientIP(ctx); got != c.want {
			t.Errorf("%v is %s, want %s", c.peer, got, c.want)
		}
		if _, err := limiter.Take(ctx, none.Limit(nil)); (err == nil) != c.exempt {
			t.Errorf("%v: %v", c.peer, err)
		}
		if out := limiter.TakeEach(ctx, none.Limit(nil)); out[0].Allowed != c.exempt {
			t.Errorf("%v: %v", c.peer, out)
		}
		limittest.Equal(t, "a client that is set", ratehttp.ClientIP(ratehttp.WithClientIP(ctx, netip.MustParseAddr("64:ff9b::1.2.3.4"))), "1.2.3.4")
	}
	answerOf(ratehttp.Middleware()(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx, err := clients.Begin(r.Context(), remote{addr: "203.0.113.66:5"})
		if got := ratehttp.ClientIP(ctx); err != nil || got != "192.0.2.1" {
			t.Errorf("in a request: %s, %v", got, err)
		}
	})))
	if _, err := limiter.Take(context.Background(), none.Limit(nil)); err == nil {
		t.Error("other calls have no limits either")
	}
}
