package rategrpc_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/ratehttp"
	"github.com/rategen/rategen/runtime/raterpc"
)

// A handler that gives every error a status of its own hides a refusal. One that says nothing is overruled,
// another is reported, and an option has it otherwise.
func TestHiddenRefusals(t *testing.T) {
	type codesByMode = map[string]codes.Code
	const none = codes.ResourceExhausted
	all := func(code codes.Code) codesByMode { return codesByMode{"left": code, "default": code, "forced": code} }
	waiting := status.New(codes.ResourceExhausted, "x")
	waiting, err := waiting.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
	limittest.OK(t, err)
	for _, test := range []struct {
		name   string
		answer func(error) error
		want   codesByMode
		hidden bool
		wait   time.Duration // in a refusal of its own
	}{
		{"Internal", func(error) error { return status.Error(codes.Internal, "secret") }, codesByMode{"left": codes.Internal, "default": none, "forced": none}, true, 0},
		{"Unknown", func(error) error { return status.Error(codes.Unknown, "secret") }, codesByMode{"left": codes.Unknown, "default": none, "forced": none}, true, 0},
		{"another error", func(error) error { return errors.New("secret") }, codesByMode{"left": codes.Unknown, "default": none, "forced": none}, true, 0},
		{"NotFound", func(error) error { return status.Error(codes.NotFound, "secret") }, codesByMode{"left": codes.NotFound, "default": codes.NotFound, "forced": none}, true, 0},
		{"Unavailable", func(error) error { return status.Error(codes.Unavailable, "x") }, all(codes.Unavailable), false, time.Hour},
		{"ResourceExhausted", func(error) error { return status.Error(codes.ResourceExhausted, "x") }, all(codes.ResourceExhausted), false, time.Hour},
		{"with a time of its own", func(error) error { return waiting.Err() }, all(codes.ResourceExhausted), false, 7 * time.Second},
		{"an end that its context has not come to", func(error) error { return context.Canceled }, codesByMode{"left": codes.Canceled, "default": codes.Canceled, "forced": none}, true, 0},
		{"Canceled, as grpc-go's health service has it", func(error) error { return status.Error(codes.Canceled, "Stream has ended.") }, codesByMode{"left": codes.Canceled, "default": codes.Canceled, "forced": none}, true, 0},
		{"DeadlineExceeded", func(error) error { return status.Error(codes.DeadlineExceeded, "x") }, codesByMode{"left": codes.DeadlineExceeded, "default": codes.DeadlineExceeded, "forced": none}, true, 0},
		{"success", func(error) error { return nil }, all(codes.OK), false, 0},
		{"as it is", func(err error) error { return err }, all(codes.ResourceExhausted), false, time.Hour},
	} {
		for mode, opts := range map[string][]raterpc.Option{"left": {raterpc.WithHiddenRefusals()}, "default": nil, "forced": {raterpc.WithForcedRefusals()}} {
			var log bytes.Buffer
			var served, hidden int
			l := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))),
				runtime.WithObserver(&observe.Observer{Hidden: func(_ context.Context, ev observe.HiddenEvent) {
					if ev.Served {
						served++
					} else {
						hidden++
					}
				}}))
			full := rule(1, time.Hour)
			_, _ = l.Take(t.Context(), full.Limit(nil))
			refuse := func(ctx context.Context) error {
				_, err := l.Take(ctx, full.Limit(nil))
				return test.answer(err)
			}
			client := dial(t, &service{
				unary: func(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
					return &pb.SimpleResponse{}, refuse(ctx)
				},
				client: func(stream pb.TestService_StreamingInputCallServer) error {
					if err := refuse(stream.Context()); err != nil {
						return err
					}
					return stream.SendAndClose(&pb.StreamingInputCallResponse{})
				},
			}, options(opts...))
			want := test.want[mode]
			overruled := test.hidden && want == none
			for range 2 {
				got := call(t, client)
				if got.status.Code() != want || overruled && (got.status.Message() != "too fast, have a cup of tea" || detail[*errdetails.ErrorInfo](got.status) == nil) {
					t.Errorf("%s, %s: %v", test.name, mode, got.status)
				}
				if info := detail[*errdetails.RetryInfo](got.status); (info != nil) != (overruled || test.wait > 0) ||
					test.wait > 0 && (info.RetryDelay.AsDuration() > test.wait || info.RetryDelay.AsDuration() < test.wait-time.Minute) {
					t.Errorf("%s, %s: %v, want %v", test.name, mode, info, test.wait)
				}
				// Every failed call has the fields, as over HTTP.
				if policy := append(got.header.Get("ratelimit-policy"), got.trailer.Get("ratelimit-policy")...); len(policy) != 1 {
					t.Errorf("%s, %s: fields %v %v", test.name, mode, got.header, got.trailer)
				}
			}
			stream, err := client.StreamingInputCall(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.CloseAndRecv(); status.Code(err) != want {
				t.Errorf("%s, %s: a stream ends with %v", test.name, mode, err)
			}
			found := test.hidden && !overruled
			if n := strings.Count(log.String(), "\n"); found != (n == 2) || found != (hidden == 3) || (want == codes.OK) != (served == 3) || found != strings.Contains(log.String(), "route=/grpc.testing.TestService/UnaryCall") {
				t.Errorf("%s, %s: %d hidden, %d served, log %q", test.name, mode, hidden, served, log.String())
			}
		}
	}
}

// The key of a directive finds the client of a call as that of a request.
func TestClientIP(t *testing.T) {
	loopback := netip.MustParsePrefix("127.0.0.0/8")
	var networks ratehttp.Networks
	var seen string
	s := &service{unary: func(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		seen = ratehttp.ClientIP(ctx)
		return &pb.SimpleResponse{}, nil
	}}
	perClient := raterpc.WithLimits(limiter(t), raterpc.MethodLimit{
		Method: "*", Rule: rule(1, time.Hour),
		Key: func(ctx context.Context, _ any) *runtime.Key {
			return runtime.NewKey().AddString(ratehttp.ClientIP(ctx))
		},
	})
	behind := dial(t, s, options(perClient, raterpc.WithClients(ratehttp.WithTrustedProxies(ratehttp.XForwardedFor, loopback), ratehttp.WithNetworks(&networks))))
	plain := dial(t, s, options(raterpc.WithClients(ratehttp.WithLogger(slog.New(slog.DiscardHandler)))))
	with := func(client pb.TestServiceClient, lines ...string) codes.Code {
		ctx := t.Context()
		for _, line := range lines {
			ctx = metadata.AppendToOutgoingContext(ctx, "x-forwarded-for", line)
		}
		seen = ""
		_, err := client.UnaryCall(ctx, &pb.SimpleRequest{})
		return status.Code(err)
	}
	for _, test := range []struct {
		client pb.TestServiceClient
		lines  []string
		want   string
		code   codes.Code
	}{
		{plain, []string{"203.0.113.7"}, "127.0.0.1", codes.OK},
		{behind, nil, "127.0.0.1", codes.OK},
		{behind, []string{"203.0.113.7"}, "203.0.113.7", codes.OK},
		{behind, []string{"198.51.100.1, 203.0.113.8", "127.0.0.1"}, "203.0.113.8", codes.OK},
		{behind, []string{"2001:db8:1::1"}, "2001:db8:1::/56", codes.OK},
		{behind, []string{"203.0.113.7"}, "", codes.ResourceExhausted},
		{behind, []string{strings.Repeat("x", 5000) + ", 203.0.113.9"}, "203.0.113.9", codes.OK},
		{behind, []string{"203.0.113.9, " + strings.Repeat(",", 5000)}, "", codes.ResourceExhausted}, // the proxy
		{behind, strings.Split(strings.Repeat("127.0.0.1 ", 70)+"\"", " "), "", codes.ResourceExhausted},
	} {
		if code := with(test.client, test.lines...); code != test.code || seen != test.want {
			t.Errorf("%.60q: %v, the client is %q", test.lines, code, seen)
		}
	}
	networks.Exempt(netip.MustParsePrefix("203.0.113.7/32"))
	networks.Refuse(netip.MustParsePrefix("203.0.113.66/32"))
	if code := with(behind, "203.0.113.7"); code != codes.OK {
		t.Errorf("a network without limits: %v", code)
	}
	if code := with(behind, "203.0.113.66"); code != codes.PermissionDenied || seen != "" {
		t.Errorf("a network that is refused: %v, the handler has seen %q", code, seen)
	}
}

// Only public limits are told, and those on calls of the service's own are no fault of
// the client's.
func TestAudience(t *testing.T) {
	capped := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithProcessCap(&runtime.Rule{Name: "shop.Orders.Get", Window: time.Hour, Max: 0, Message: "busy"}))
	defer func() { _ = capped.Close() }()
	flight := &runtime.Rule{Name: "shop.Orders.Get", Window: time.Hour, Max: 1, Algorithm: runtime.Concurrency}
	held := limiter(t)
	if _, err := held.Take(t.Context(), flight.Limit(nil)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name     string
		limiter  *runtime.Limiter
		rule     *runtime.Rule
		audience ratefield.Audience
		code     codes.Code
		reason   string
		told     bool
		retry    time.Duration // at most
	}{
		{"public", limiter(t), rule(1, time.Hour), ratefield.Public, codes.ResourceExhausted, "RATE_LIMIT_EXCEEDED", true, time.Hour},
		{"internal", limiter(t), rule(1, time.Hour), ratefield.Internal, codes.ResourceExhausted, "RATE_LIMIT_EXCEEDED", false, time.Hour},
		{"outgoing", limiter(t), rule(1, time.Hour), ratefield.Outgoing, codes.Unavailable, "TEMPORARY_REDUCED_CAPACITY", false, time.Hour},
		{"cap of the process", capped, rule(10, time.Hour), ratefield.Public, codes.ResourceExhausted, "COST_EXCEEDS_RATE_LIMIT", false, 0},
		{"in flight", held, flight, ratefield.Public, codes.ResourceExhausted, "RATE_LIMIT_EXCEEDED", true, time.Second},
	} {
		client := dial(t, &service{unary: limitedBy(test.limiter, test.rule)},
			options(raterpc.WithPolicy("shop.*", ratefield.Policy{Audience: test.audience})))
		call(t, client)
		got := call(t, client)
		info, retry := detail[*errdetails.ErrorInfo](got.status), detail[*errdetails.RetryInfo](got.status).GetRetryDelay().AsDuration()
		text := got.status.Proto().String() + strings.Join(got.trailer.Get("ratelimit-policy"), "")
		if got.status.Code() != test.code || info.GetReason() != test.reason || strings.Contains(text, "Orders.Get") != test.told ||
			(info.GetMetadata()["limit"] != "") != test.told || retry > test.retry || (retry > 0) != (test.retry > 0) || (info.GetMetadata()["retry_after"] != "") != (retry > 0) {
			t.Errorf("%s: %s", test.name, text)
		}
	}
}

// A text tells when to come back, in the language of the call.
func TestMessages(t *testing.T) {
	spoken := &runtime.Rule{Name: "x", Window: time.Minute, Max: 1, Message: "come back in {retry_after}"}
	client := dial(t, &service{unary: limitedBy(limiter(t), spoken)}, options(raterpc.WithMessages(func(language, rule string) string {
		return map[string]string{"zh/x": "请 {retry_after} 后再来"}[language+"/"+rule]
	})))
	call(t, client)
	for accept, want := range map[string]string{"de": "come back in 1m", "de, zh-CN;q=0.5": "请 1m 后再来"} {
		_, err := client.UnaryCall(metadata.AppendToOutgoingContext(t.Context(), "accept-language", accept), &pb.SimpleRequest{})
		limittest.Equal(t, accept, status.Convert(err).Message(), want)
	}
}
