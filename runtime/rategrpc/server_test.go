package rategrpc_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/rategen/rategen/internal/testkit/leaks"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rategrpc"
	"github.com/rategen/rategen/runtime/raterpc"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// A service answers by functions. One that is nil is unimplemented.
type service struct {
	pb.UnimplementedTestServiceServer
	unary  func(context.Context) error
	server func(pb.TestService_StreamingOutputCallServer) error
	bidi   func(pb.TestService_FullDuplexCallServer) error
}

func (s *service) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return &pb.SimpleResponse{}, s.unary(ctx)
}

func (s *service) StreamingOutputCall(_ *pb.StreamingOutputCallRequest, stream pb.TestService_StreamingOutputCallServer) error {
	return s.server(stream)
}

func (s *service) FullDuplexCall(stream pb.TestService_FullDuplexCallServer) error {
	return s.bidi(stream)
}

// serving answers calls and streams by a function.
func serving(do func(context.Context) error) *service {
	return &service{unary: do, server: func(stream pb.TestService_StreamingOutputCallServer) error { return do(stream.Context()) }}
}

func succeed(context.Context) error { return nil }

// limitedBy is a handler that a rule limits inside of it, as a generated wrapper does.
func limitedBy(l *runtime.Limiter, r *runtime.Rule) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := l.Take(ctx, r.Limit(nil))
		return err
	}
}

// dial serves on a port of this machine and returns a client of it.
func dial(t *testing.T, s *service, server []grpc.ServerOption, client ...grpc.DialOption) pb.TestServiceClient {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	limittest.OK(t, err)
	srv := grpc.NewServer(server...)
	pb.RegisterTestServiceServer(srv, s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(listener) // ends when the server is stopped
	}()
	conn, err := grpc.Dial(listener.Addr().String(), append(client, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	limittest.OK(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		srv.Stop()
		<-done
	})
	return pb.NewTestServiceClient(conn)
}

// limiter returns a limiter that counts in memory.
func limiter(t *testing.T, opts ...runtime.Option) *runtime.Limiter {
	l := runtime.New(runtime.NewMemoryStore(), append(opts, runtime.WithLogger(slog.New(slog.DiscardHandler)))...)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// rule returns a rule that a generated file could hold.
func rule(max int64, window time.Duration) *runtime.Rule {
	return &runtime.Rule{Name: "shop.Orders.Get", Window: window, Max: max, Message: "too fast, have a cup of tea"}
}

// an answer is what a client gets of a call.
type answer struct {
	header, trailer metadata.MD
	status          *status.Status
}

func call(t *testing.T, client pb.TestServiceClient) (a answer) {
	t.Helper()
	_, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{}, grpc.Header(&a.header), grpc.Trailer(&a.trailer))
	a.status = status.Convert(err)
	return a
}

// calls are a unary call and a stream that is received to its end.
func calls(client pb.TestServiceClient) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"unary": func(ctx context.Context) error {
			_, err := client.UnaryCall(ctx, &pb.SimpleRequest{})
			return err
		},
		"stream": func(ctx context.Context) error {
			stream, err := client.StreamingOutputCall(ctx, &pb.StreamingOutputCallRequest{})
			if err == nil {
				_, err = receive(stream)
			}
			if err == io.EOF {
				return nil
			}
			return err
		},
	}
}

// detail returns the detail of a type, or nil.
func detail[T any](s *status.Status) (found T) {
	for _, d := range s.Details() {
		if d, ok := d.(T); ok {
			return d
		}
	}
	return found
}

func options(opts ...raterpc.Option) []grpc.ServerOption { return rategrpc.ServerOptions(opts...) }

// TestCheckLimits compares limits with what a server has registered.
func TestCheckLimits(t *testing.T) {
	server := grpc.NewServer()
	pb.RegisterTestServiceServer(server, &service{})
	rule := &runtime.Rule{Name: "r", Window: time.Minute, Max: 1}
	err := rategrpc.CheckLimits(server,
		raterpc.MethodLimit{Method: "/grpc.testing.TestService/StreamingOutputCall", Rule: rule, On: raterpc.OnSend},
		raterpc.MethodLimit{Method: "/grpc.testing.TestService/Unarycall", Rule: rule},
		raterpc.MethodLimit{Method: "/grpc.testing.TestService/StreamingInputCall", Rule: rule, On: raterpc.OnSend})
	want := `the limit of method "/grpc.testing.TestService/Unarycall" fits no method of the server: did you mean "/grpc.testing.TestService/UnaryCall"?
the limit of method "/grpc.testing.TestService/StreamingInputCall" charges what is sent, and no method that it fits sends a stream: leave OnSend out`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want\n%s", err, want)
	}
}

// TestUnmetMethods limits what no server can have: a method that its service has not is refused, and a
// misspelt service is told with the first call. Services of which nothing is known are left alone.
func TestUnmetMethods(t *testing.T) {
	limits := func(methods ...string) (limits []raterpc.MethodLimit) {
		for _, m := range methods {
			limits = append(limits, raterpc.MethodLimit{Method: m, Rule: rule(5, time.Minute)})
		}
		return limits
	}
	excepting := limits("/grpc.testing.TestService/*")
	excepting[0].Except = []string{"/grpc.testing.TestService/Unary"}
	for want, limits := range map[string][]raterpc.MethodLimit{
		`raterpc.WithLimits: method "/grpc.testing.TestService/unarycall": the service has no method of that name: did you mean "/grpc.testing.TestService/UnaryCall"?`: limits("/grpc.testing.TestService/unarycall"),
		`raterpc.WithLimits: method "/grpc.testing.TestService/Unary": the service has no method of that name`:                                                          excepting,
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic %v, want %s", got, want)
				}
			}()
			raterpc.WithLimits(limiter(t), limits...)
		}()
	}
	l := limiter(t)
	client := dial(t, serving(succeed), options(raterpc.WithLimits(l, limits("*", "/grpc.testing.TestService/UnaryCall", "/grpc.testing.testService/UnaryCall", "/testing.TestService/*", "/other.v1.Things/Do")...)))
	unmet := func() (details []string) {
		for _, f := range l.Findings() {
			if f.Code == "method_unmet" {
				details = append(details, f.Detail)
			}
		}
		return details
	}
	limittest.Equal(t, "before a call", len(unmet()), 0)
	for range 2 {
		call(t, client)
		limittest.Equal(t, "unmet", strings.Join(unmet(), "\n"), `/grpc.testing.testService/UnaryCall: did you mean "/grpc.testing.TestService/UnaryCall"?
/testing.TestService/*: did you mean "/grpc.testing.TestService/*"?`)
	}
}
