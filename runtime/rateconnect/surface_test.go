package rateconnect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
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

// A handler that hides a refusal by an error that says nothing is overruled, one that hides it by another is
// reported, and one that tells it by itself is told the time, in every protocol.
func TestHiddenRefusals(t *testing.T) {
	shared := connect.NewError(connect.CodeResourceExhausted, errors.New("secret")) // by all calls
	shared.Meta().Set("X-Own", "1")
	waiting := connect.NewError(connect.CodeResourceExhausted, errors.New("secret"))
	info, _ := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
	waiting.AddDetail(info)
	for hidden, c := range map[error]struct {
		code connect.Code
		wait time.Duration // in a refusal of its own
	}{
		connect.NewError(connect.CodeInternal, errors.New("secret")): {connect.CodeInternal, 0},
		errors.New("secret"): {connect.CodeUnknown, 0},
		connect.NewError(connect.CodeNotFound, errors.New("secret")): {connect.CodeNotFound, 0},
		fmt.Errorf("secret: %w", context.Canceled):                   {connect.CodeCanceled, 0}, // of the handler's own
		fmt.Errorf("secret: %w", context.DeadlineExceeded):           {connect.CodeDeadlineExceeded, 0},
		shared:  {connect.CodeResourceExhausted, time.Hour},
		waiting: {connect.CodeResourceExhausted, 7 * time.Second},
	} {
		for mode, opts := range map[string][]raterpc.Option{"left": {raterpc.WithHiddenRefusals()}, "default": nil, "forced": {raterpc.WithForcedRefusals()}} {
			reported := 0
			l := limiter(t, runtime.WithObserver(&observe.Observer{Hidden: func(context.Context, observe.HiddenEvent) { reported++ }}))
			refused := limitedBy(l, rule(1))
			_ = refused(t.Context())
			url := serve(t, serving(func(ctx context.Context) error {
				_ = refused(ctx)
				return hidden
			}), opts...)
			overruled := c.wait == 0 && (mode == "forced" || mode == "default" && (c.code == connect.CodeInternal || c.code == connect.CodeUnknown))
			want, wait, reports := c.code, c.wait, 0
			if overruled {
				want, wait = connect.CodeResourceExhausted, time.Hour
			}
			for _, w := range ways {
				for kind, do := range calls(t, w, url) {
					if wait == 0 {
						reports++
					}
					err := do(nil)
					info, told := details(t, err)["google.rpc.RetryInfo"].(*errdetails.RetryInfo)
					after := info.GetRetryDelay().AsDuration()
					if connect.CodeOf(err) != want || strings.Contains(err.Error(), "secret") == overruled || reported != reports ||
						told != (wait > 0) || after > wait || after < wait-time.Minute || hidden == error(shared) && meta(err).Get("X-Own") != "1" {
						t.Errorf("%s, %s, %v, %s: %v, %v, reported %d times", w.name, kind, hidden, mode, err, info, reported)
					}
				}
			}
		}
	}
	if len(shared.Details()) != 0 || len(shared.Meta()) != 1 {
		t.Errorf("an error of the program's was changed: %v %v", shared.Details(), shared.Meta())
	}
}

// Clients are found by the peer, or by what a trusted peer says, for calls and streams.
func TestClientIP(t *testing.T) {
	var networks ratehttp.Networks
	var seen string
	url := serve(t, serving(func(ctx context.Context) error {
		seen = ratehttp.ClientIP(ctx)
		return nil
	}), raterpc.WithClients(ratehttp.WithTrustedHops(ratehttp.Forwarded, 1), ratehttp.WithNetworks(&networks)))
	networks.Refuse(netip.MustParsePrefix("2001:db8:bad::/48"))
	for header, want := range map[string]string{
		"": "127.0.0.1", `for=10.0.0.1, for="[2001:db8:1::1]:5"`: "2001:db8:1::/56", `for="[2001:db8:bad::1]"`: "",
	} {
		for _, w := range ways {
			for kind, do := range calls(t, w, url) {
				seen = ""
				err := do(http.Header{"Forwarded": {header}})
				if seen != want || (connect.CodeOf(err) == connect.CodePermissionDenied) != (want == "") {
					t.Errorf("%s, %s, %q: the client is %q, %v", w.name, kind, header, seen, err)
				}
			}
		}
	}
}
