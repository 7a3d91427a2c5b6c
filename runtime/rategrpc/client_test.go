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
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
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

// A client makes no more calls of a service than its limit admits, unary or not, for each
// credential, and says by its status why.
func TestClientLimit(t *testing.T) {
	options, _ := outgoing(t, "127.0.0.1/grpc.testing.TestService/", 2)
	client := dial(t, &service{
		unary: func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			return &pb.SimpleResponse{}, nil
		},
		server: func(*pb.StreamingOutputCallRequest, pb.TestService_StreamingOutputCallServer) error {
			return nil
		},
	}, nil, options...)
	unary := func(token string) error {
		_, err := client.UnaryCall(as(token), &pb.SimpleRequest{})
		return err
	}
	stream := func(token string) error {
		s, err := client.StreamingOutputCall(as(token), &pb.StreamingOutputCallRequest{})
		if err == nil {
			_, _ = s.Recv()
		}
		return err
	}
	for i, c := range []struct {
		do    func(string) error
		token string
		fails bool
	}{{unary, "a", false}, {stream, "a", false}, {unary, "a", true}, {stream, "a", true}, {unary, "b", false}} {
		err := c.do(c.token)
		if !c.fails && err == nil {
			continue
		}
		s := status.Convert(err)
		var limited *runtime.LimitedError
		retry := false
		for _, d := range s.Details() {
			_, is := d.(*errdetails.RetryInfo)
			retry = retry || is
		}
		if !c.fails || s.Code() != codes.ResourceExhausted || !errors.As(err, &limited) || limited.Rule != "peer" || !retry {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// A refusal by the peer holds calls back, for as long as it says.
func TestClientHeld(t *testing.T) {
	retry := func(code codes.Code, d time.Duration) error {
		s, err := status.New(code, "no").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(d)})
		limittest.OK(t, err)
		return s.Err()
	}
	for name, c := range map[string]struct {
		err      error
		pushback string
		held     time.Duration
	}{
		"none":                        {nil, "", 0},
		"RetryInfo":                   {retry(codes.ResourceExhausted, 90*time.Second), "", 90 * time.Second},
		"UNAVAILABLE with RetryInfo":  {retry(codes.Unavailable, 7*time.Second), "", 7 * time.Second},
		"UNAVAILABLE":                 {status.Error(codes.Unavailable, "down"), "", 0},
		"pushback":                    {status.Error(codes.ResourceExhausted, "no"), "2500", 2500 * time.Millisecond},
		"no retry":                    {status.Error(codes.ResourceExhausted, "no"), "-1", 0},
		"nothing said":                {status.Error(codes.ResourceExhausted, "no"), "", 0},
		"what the peer is told of":    {status.Error(codes.ResourceExhausted, "too many"), "", time.Second},
		"for ever":                    {retry(codes.ResourceExhausted, 1<<62), "", time.Hour},
		"negative":                    {retry(codes.ResourceExhausted, -time.Hour), "", time.Second},
		"another code with RetryInfo": {retry(codes.NotFound, time.Second), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			options, held := outgoing(t, "/", 10)
			client := dial(t, &service{
				unary: func(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
					if c.pushback != "" {
						_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", c.pushback))
					}
					return &pb.SimpleResponse{}, c.err
				},
				server: func(_ *pb.StreamingOutputCallRequest, s pb.TestService_StreamingOutputCallServer) error {
					if c.pushback != "" {
						s.SetTrailer(metadata.Pairs("grpc-retry-pushback-ms", c.pushback))
					}
					return c.err
				},
			}, nil, options...)
			for kind, do := range map[string]func(context.Context) error{
				"unary": func(ctx context.Context) error {
					_, err := client.UnaryCall(ctx, &pb.SimpleRequest{})
					return err
				},
				"stream": func(ctx context.Context) error {
					s, err := client.StreamingOutputCall(ctx, &pb.StreamingOutputCallRequest{})
					if err == nil {
						_, _ = s.Recv()
					}
					return err
				},
			} {
				held.Store(0)
				ctx := as(kind)
				if err := do(ctx); status.Code(err) != status.Code(c.err) && kind == "unary" {
					t.Fatalf("%s: %v, want %v", kind, err, c.err)
				}
				if got := time.Duration(held.Load()); got != c.held {
					t.Errorf("%s: held for %v, want %v", kind, got, c.held)
				}
				var limited *runtime.LimitedError
				if err := do(ctx); errors.As(err, &limited) != (c.held > 0) || c.held > 0 && !limited.Blocked {
					t.Errorf("%s: the next call: %v", kind, err)
				}
			}
		})
	}
}

// The pattern of a peer is met by every spelling of its target.
func TestClientTargets(t *testing.T) {
	for target, host := range map[string]string{
		"api.example.com:443":                    "api.example.com",
		"api.example.com":                        "api.example.com",
		"dns:api.example.com:443":                "api.example.com",
		"dns:///api.example.com:443":             "api.example.com",
		"DNS:///api.example.com":                 "api.example.com",
		"dns://10.0.0.1:53/api.example.com:443":  "api.example.com",
		"passthrough:api.example.com:443":        "api.example.com",
		"passthrough:///api.example.com:443":     "api.example.com",
		"xds:///api.example.com":                 "api.example.com",
		"xds://server/api.example.com:80":        "api.example.com",
		"own://x/api.example.com:80?weight=1":    "api.example.com",
		"ipv4:10.0.0.1:80,10.0.0.2:80":           "10.0.0.1",
		"localhost:50051":                        "localhost",
		"unix:/run/api.sock":                     "localhost",
		"unix:api.sock":                          "localhost",
		"unix:///run/api.sock":                   "localhost",
		"unix-abstract:api":                      "localhost",
		"passthrough:///unix:///run/api.sock":    "localhost",
		"dns:///[2001:db8::1]:443":               "2001:db8::1",
		"ipv6:[2001:db8::1]:80,[2001:db8::2]:80": "2001:db8::1",
	} {
		options, _ := outgoing(t, host+"/grpc.testing.TestService/", 1)
		cc, err := grpc.Dial(target, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...) //nolint:staticcheck // NewClient is newer than what go.mod wants
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		client := pb.NewTestServiceClient(cc)
		for range 2 { // nobody answers the first one
			ctx, cancel := context.WithTimeout(as("a"), 20*time.Millisecond)
			_, err = client.UnaryCall(ctx, &pb.SimpleRequest{})
			cancel()
		}
		if !errors.Is(err, runtime.ErrLimited) {
			t.Errorf("%s is not the peer %s: %v", target, host, err)
		}
		_ = cc.Close()
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
	client := dial(t, &service{
		unary: func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			return &pb.SimpleResponse{}, answer
		},
		server: func(*pb.StreamingOutputCallRequest, pb.TestService_StreamingOutputCallServer) error {
			return answer
		},
	}, nil, rategrpc.BackendOptions()...)
	calls := map[string]func(context.Context) error{
		"unary": func(ctx context.Context) error {
			_, err := client.UnaryCall(ctx, &pb.SimpleRequest{})
			return err
		},
		"stream": func(ctx context.Context) error {
			s, err := client.StreamingOutputCall(ctx, &pb.StreamingOutputCallRequest{})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		},
	}
	full, away := details(codes.ResourceExhausted, 1200*time.Millisecond), details(codes.Unavailable, time.Minute)
	for _, c := range []struct {
		backend error
		writes  int // 0: what ratehttp.Error says
		status  int
		after   string
	}{
		{full, 500, 429, "2"}, {full, 429, 429, "2"}, {full, 503, 503, "2"}, {full, 404, 404, ""}, {full, 0, 429, "2"},
		{away, 500, 503, "60"}, {away, 0, 503, "60"},
		{details(codes.ResourceExhausted, 0), 500, 500, ""}, {details(codes.ResourceExhausted, -time.Second), 500, 500, ""},
		{status.Error(codes.ResourceExhausted, "too large"), 500, 500, ""}, {status.Error(codes.ResourceExhausted, "too large"), 0, 502, ""},
		{status.Error(codes.Unavailable, "away"), 500, 500, ""}, {details(codes.Internal, time.Minute), 500, 500, ""},
	} {
		for name, do := range calls {
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
