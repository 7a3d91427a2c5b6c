package rategrpc_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/rategen/rategen/runtime/rategrpc"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// outgoing returns the options of a client with a limit of its own, for one method or
// service and credential, and what it has been held for.
func outgoing(t *testing.T, pattern string, max int64) ([]grpc.DialOption, *atomic.Int64) {
	t.Helper()
	held := new(atomic.Int64)
	transport, err := rateclient.New(limiter(t, runtime.WithObserver(&observe.Observer{
		Hold: func(_ context.Context, ev observe.HoldEvent) { held.Store(int64(ev.For)) },
	})), []rateclient.Peer{{
		Pattern: pattern,
		Limits:  []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "peer", Window: time.Hour, Max: max}, Key: rateclient.Credential}},
		Body: rateclient.Body{Statuses: []int{int(codes.ResourceExhausted)}, Read: func(a *rateclient.Answer, text []byte) {
			a.Refused = a.Refused || string(text) == "too many"
		}},
	}}, rateclient.WithLogger(slog.New(slog.DiscardHandler)))
	limittest.OK(t, err)
	return rategrpc.DialOptions(transport), held
}

func as(token string) context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), "authorization", token)
}

// A client makes no more calls of a service than its limit admits, for each credential, and a refusal by the peer holds
// calls back for as long as it says. The status of what is not sent says why.
func TestClient(t *testing.T) {
	retry := func(code codes.Code, d time.Duration) error {
		s, err := status.New(code, "no").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(d)})
		limittest.OK(t, err)
		return s.Err()
	}
	for name, c := range map[string]struct {
		err      error
		pushback string
		max      int64
		held     time.Duration
	}{
		"none":                       {nil, "", 10, 0},
		"no room":                    {nil, "", 1, 0},
		"RetryInfo":                  {retry(codes.ResourceExhausted, 90*time.Second), "", 10, 90 * time.Second},
		"UNAVAILABLE with RetryInfo": {retry(codes.Unavailable, 7*time.Second), "", 10, 7 * time.Second},
		"UNAVAILABLE":                {status.Error(codes.Unavailable, "down"), "", 10, 0},
		"pushback":                   {status.Error(codes.ResourceExhausted, "no"), "2500", 10, 2500 * time.Millisecond},
		"what the peer is told of":   {status.Error(codes.ResourceExhausted, "too many"), "", 10, time.Second},
	} {
		options, held := outgoing(t, "127.0.0.1/grpc.testing.TestService/", c.max)
		client := dial(t, serving(func(ctx context.Context) error {
			if c.pushback != "" {
				_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", c.pushback))
			}
			return c.err
		}), nil, options...)
		for kind, do := range calls(client) {
			held.Store(0)
			ctx := as(kind)
			if err := do(ctx); status.Code(err) != status.Code(c.err) {
				t.Fatalf("%s, %s: %v, want %v", name, kind, err, c.err)
			}
			if got := time.Duration(held.Load()); got != c.held {
				t.Errorf("%s, %s: held for %v, want %v", name, kind, got, c.held)
			}
			err := do(ctx)
			var limited *runtime.LimitedError
			if refused := c.held > 0 || c.max == 1; errors.As(err, &limited) != refused {
				t.Errorf("%s, %s: the next call: %v", name, kind, err)
			} else if s := status.Convert(err); refused && (limited.Rule != "peer" || limited.Blocked != (c.held > 0) ||
				s.Code() != codes.ResourceExhausted || detail[*errdetails.RetryInfo](s) == nil) {
				t.Errorf("%s, %s: the next call: %+v, %v", name, kind, limited, s)
			}
		}
	}
}

// A server over HTTP answers what its backend refuses as a refusal of its own, with the backend's
// time, unless its handler says something better.
func TestBackendOptions(t *testing.T) {
	details := func(code codes.Code, after time.Duration) error {
		s, err := status.New(code, "full").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
		limittest.OK(t, err)
		return s.Err()
	}
	var answer error
	client := dial(t, serving(func(context.Context) error { return answer }), nil, rategrpc.BackendOptions()...)
	full, away, large := details(codes.ResourceExhausted, 1200*time.Millisecond), details(codes.Unavailable, time.Minute), status.Error(codes.ResourceExhausted, "too large")
	for _, c := range []struct {
		backend error
		writes  int // 0: what ratehttp.Error says
		status  int
		after   string
	}{
		{full, 500, 429, "2"}, {full, 429, 429, "2"}, {full, 404, 404, ""}, {full, 0, 429, "2"}, {away, 500, 503, "60"}, {away, 0, 503, "60"},
		{details(codes.ResourceExhausted, 0), 500, 500, ""}, {large, 500, 500, ""}, {large, 0, 502, ""}, {details(codes.Internal, time.Minute), 500, 500, ""},
	} {
		for name, do := range calls(client) {
			answer = c.backend
			w := httptest.NewRecorder()
			ratehttp.Middleware()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				err := do(r.Context())
				if c.writes > 0 {
					w.WriteHeader(c.writes)
				} else if !ratehttp.Error(w, r, err) {
					w.WriteHeader(http.StatusBadGateway)
				}
			})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if w.Code != c.status || w.Header().Get("Retry-After") != c.after {
				t.Errorf("%s, %v, %d: %d with Retry-After %q, want %d with %q", name, c.backend, c.writes, w.Code, w.Header().Get("Retry-After"), c.status, c.after)
			}
			if err := do(t.Context()); status.Code(err) != status.Code(c.backend) {
				t.Errorf("%s, %v: under no request %v", name, c.backend, err)
			}
		}
	}
}
