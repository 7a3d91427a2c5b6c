package rategrpc_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/ratehttp"
	"github.com/rategen/rategen/runtime/raterpc"
)

// A handler that gives every error a status of its own hides a refusal. One that says nothing is overruled,
// another is reported, and an option has it otherwise.
func TestHiddenRefusals(t *testing.T) {
	waiting, err := status.New(codes.ResourceExhausted, "secret").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
	limittest.OK(t, err)
	returns := func(err error) func(error) error { return func(error) error { return err } }
	for name, c := range map[string]struct {
		answer func(error) error
		code   codes.Code
		wait   time.Duration // in a refusal of its own
	}{
		"Internal":      {returns(status.Error(codes.Internal, "secret")), codes.Internal, 0},
		"another error": {returns(errors.New("secret")), codes.Unknown, 0},
		"NotFound":      {returns(status.Error(codes.NotFound, "secret")), codes.NotFound, 0},
		"an end that its context has not come to":  {returns(context.Canceled), codes.Canceled, 0},
		"Canceled, as of grpc-go's health service": {returns(status.Error(codes.Canceled, "secret")), codes.Canceled, 0},
		"Unavailable": {returns(status.Error(codes.Unavailable, "secret")), codes.Unavailable, time.Hour},
		"ResourceExhausted, with a time of its own": {returns(waiting.Err()), codes.ResourceExhausted, 7 * time.Second},
		"success":   {returns(nil), codes.OK, 0},
		"as it is":  {func(err error) error { return err }, codes.ResourceExhausted, time.Hour},
		"exhausted": {returns(status.Error(codes.ResourceExhausted, "secret")), codes.ResourceExhausted, time.Hour},
	} {
		for mode, opts := range map[string][]raterpc.Option{"left": {raterpc.WithHiddenRefusals()}, "default": nil, "forced": {raterpc.WithForcedRefusals()}} {
			var reported, served int
			l := limiter(t, runtime.WithObserver(&observe.Observer{Hidden: func(_ context.Context, ev observe.HiddenEvent) {
				reported++
				if ev.Served {
					served++
				}
			}}))
			refused := limitedBy(l, rule(1, time.Hour))
			_ = refused(t.Context())
			client := dial(t, serving(func(ctx context.Context) error { return c.answer(refused(ctx)) }), options(opts...))
			overruled := c.wait == 0 && c.code != codes.OK && (mode == "forced" || mode == "default" && (c.code == codes.Internal || c.code == codes.Unknown))
			want, wait := c.code, c.wait
			if overruled {
				want, wait = codes.ResourceExhausted, time.Hour
			}
			for kind, do := range calls(client) {
				got := status.Convert(do(t.Context()))
				info := detail[*errdetails.RetryInfo](got)
				if after := info.GetRetryDelay().AsDuration(); got.Code() != want || (info != nil) != (wait > 0) || after > wait || after < wait-time.Minute ||
					overruled && (got.Message() != "too fast, have a cup of tea" || detail[*errdetails.ErrorInfo](got) == nil) {
					t.Errorf("%s, %s, %s: %v", name, mode, kind, got)
				}
			}
			// Every call has the fields, as over HTTP.
			got := call(t, client)
			if policy := append(got.header.Get("ratelimit-policy"), got.trailer.Get("ratelimit-policy")...); len(policy) != 1 {
				t.Errorf("%s, %s: fields %v %v", name, mode, got.header, got.trailer)
			}
			found := map[bool]int{true: 3}[c.wait == 0 && !overruled]
			if reported != found || served != map[bool]int{true: 3}[c.code == codes.OK] {
				t.Errorf("%s, %s: %d were reported, %d served", name, mode, reported, served)
			}
		}
	}
}

// The key of a directive finds the client of a call as that of a request.
func TestClientIP(t *testing.T) {
	var networks ratehttp.Networks
	networks.Refuse(netip.MustParsePrefix("203.0.113.66/32"))
	var seen string
	s := serving(func(ctx context.Context) error {
		seen = ratehttp.ClientIP(ctx)
		return nil
	})
	behind := dial(t, s, options(raterpc.WithClients(ratehttp.WithTrustedProxies(ratehttp.XForwardedFor, netip.MustParsePrefix("127.0.0.0/8")), ratehttp.WithNetworks(&networks))))
	plain := dial(t, s, options(raterpc.WithClients(ratehttp.WithLogger(slog.New(slog.DiscardHandler)))))
	for _, c := range []struct {
		trusted bool
		lines   []string
		want    string
	}{
		{false, []string{"203.0.113.7"}, "127.0.0.1"},
		{true, nil, "127.0.0.1"},
		{true, []string{"198.51.100.1, 203.0.113.8", "127.0.0.1"}, "203.0.113.8"},
		{true, []string{strings.Repeat("x", 5000) + ", 203.0.113.9"}, "203.0.113.9"},
		{true, []string{"203.0.113.66"}, ""},
	} {
		client, ctx := plain, t.Context()
		if c.trusted {
			client = behind
		}
		for _, line := range c.lines {
			ctx = metadata.AppendToOutgoingContext(ctx, "x-forwarded-for", line)
		}
		for kind, do := range calls(client) {
			seen = ""
			if err := do(ctx); seen != c.want || (status.Code(err) == codes.PermissionDenied) != (c.want == "") {
				t.Errorf("%s, %.60q: the client is %q, %v", kind, c.lines, seen, err)
			}
		}
	}
}
