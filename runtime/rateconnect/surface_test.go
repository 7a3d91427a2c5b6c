package rateconnect_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateconnect"
	"github.com/rategen/rategen/runtime/ratehttp"
	"github.com/rategen/rategen/runtime/raterpc"
)

// With ratehttp's middleware around the handlers each policy is told once, by either.
func TestMiddlewareTellsOnce(t *testing.T) {
	outer := ratehttp.RequestLimit{Limiter: limiter(t), Rule: &runtime.Rule{Name: "outer", Window: time.Hour, Max: 100}}
	opts := connect.WithInterceptors(rateconnect.NewInterceptor(limits(t, 1, raterpc.OnOpen)))
	var client string
	mux := http.NewServeMux()
	mux.Handle(unary, connect.NewUnaryHandler(unary, func(ctx context.Context, _ *connect.Request[text]) (*connect.Response[text], error) {
		client = ratehttp.ClientIP(ctx)
		return connect.NewResponse(&text{}), nil
	}, opts))
	mux.Handle(serverStream, connect.NewServerStreamHandler(serverStream, func(_ context.Context, _ *connect.Request[text], s *connect.ServerStream[text]) error {
		return s.Send(&text{})
	}, opts))
	h := ratehttp.Middleware(ratehttp.WithTrustedProxies(ratehttp.XForwardedFor, netip.MustParsePrefix("192.0.2.0/24")))(outer.Wrap(mux))
	for i, want := range []int{200, 429} {
		r := httptest.NewRequest("POST", unary, strings.NewReader(`"x"`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Forwarded-For", "203.0.113.7")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want || client != "203.0.113.7" {
			t.Errorf("call %d: status %d, client %q", i, w.Code, client)
		}
		for field, param := range map[string]string{"RateLimit": ";r=", "RateLimit-Policy": ";q="} {
			all := strings.Join(w.Header().Values(field), ", ")
			if strings.Count(all, `"Orders.Get"`+param) != 1 || strings.Count(all, `"outer"`+param) != 1 {
				t.Errorf("call %d: %s: %s", i, field, all)
			}
		}
	}
}

// A handler that hides a refusal is overruled by an option, in every protocol.
func TestForcedRefusals(t *testing.T) {
	for hidden, code := range map[error]connect.Code{
		connect.NewError(connect.CodeInternal, errors.New("secret")): connect.CodeInternal,
		connect.NewError(connect.CodeCanceled, errors.New("secret")): connect.CodeCanceled,
		fmt.Errorf("secret: %w", context.DeadlineExceeded):           connect.CodeDeadlineExceeded, // of the handler's own
	} {
		testForcedRefusals(t, hidden, code)
	}
}

func testForcedRefusals(t *testing.T, hidden error, code connect.Code) {
	for _, force := range []bool{false, true} {
		reported := 0
		l := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)),
			runtime.WithObserver(&runtime.Observer{Hidden: func(context.Context, runtime.HiddenEvent) { reported++ }}))
		var opts []raterpc.Option
		if force {
			opts = append(opts, raterpc.WithForcedRefusals())
		}
		hide := func(ctx context.Context, _ *connect.Request[text]) (*connect.Response[text], error) {
			_, _ = l.Take(ctx, rule(0).Limit(nil))
			return nil, hidden
		}
		url := serve(t, &orders{get: hide}, opts...)
		for i, w := range ways {
			_, err := client(t, w, url, unary).CallUnary(t.Context(), connect.NewRequest(&text{}))
			want, reports := code, i+1
			if force {
				want, reports = connect.CodeResourceExhausted, 0
			}
			if connect.CodeOf(err) != want || strings.Contains(err.Error(), "secret") == force || reported != reports {
				t.Errorf("%s, forced %t: %v, reported %d times", w.name, force, err, reported)
			}
		}
	}
}

// Clients are found by the peer, or by what a trusted peer says, for calls and streams.
func TestClientIP(t *testing.T) {
	var networks ratehttp.Networks
	var seen string
	url := serve(t, &orders{
		get: func(ctx context.Context, _ *connect.Request[text]) (*connect.Response[text], error) {
			seen = ratehttp.ClientIP(ctx)
			return connect.NewResponse(&text{}), nil
		},
		list: func(ctx context.Context, _ *connect.Request[text], s *connect.ServerStream[text]) error {
			seen = ratehttp.ClientIP(ctx)
			return s.Send(&text{})
		},
	}, raterpc.WithClients(ratehttp.WithTrustedHops(ratehttp.Forwarded, 1), ratehttp.WithNetworks(&networks)))
	networks.Refuse(netip.MustParsePrefix("2001:db8:bad::/48"))
	for header, want := range map[string]string{
		"": "127.0.0.1", `for=10.0.0.1, for="[2001:db8:1::1]:5"`: "2001:db8:1::/56", "for=unknown": "127.0.0.1", `for="[2001:db8:bad::1]"`: "",
	} {
		for _, w := range ways {
			seen = ""
			req := connect.NewRequest(&text{})
			req.Header().Set("Forwarded", header)
			_, err := client(t, w, url, unary).CallUnary(t.Context(), req)
			if seen != want || (connect.CodeOf(err) == connect.CodePermissionDenied) != (want == "") {
				t.Errorf("%s, %q: the client is %q, %v", w.name, header, seen, err)
			}
			seen = ""
			req = connect.NewRequest(&text{})
			req.Header().Set("Forwarded", header)
			stream, err := client(t, w, url, serverStream).CallServerStream(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			for stream.Receive() {
			}
			if seen != want || (connect.CodeOf(stream.Err()) == connect.CodePermissionDenied) != (want == "") {
				t.Errorf("%s, %q: the client of a stream is %q, %v", w.name, header, seen, stream.Err())
			}
			_ = stream.Close()
		}
	}
}
