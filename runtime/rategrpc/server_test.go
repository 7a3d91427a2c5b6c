package rategrpc_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/rategen/rategen/internal/testkit/leaks"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rategrpc"
	"github.com/rategen/rategen/runtime/raterpc"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// A service answers by functions. One that is nil is unimplemented.
type service struct {
	pb.UnimplementedTestServiceServer
	unary  func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error)
	server func(*pb.StreamingOutputCallRequest, pb.TestService_StreamingOutputCallServer) error
	client func(pb.TestService_StreamingInputCallServer) error
	bidi   func(pb.TestService_FullDuplexCallServer) error
}

func (s *service) UnaryCall(ctx context.Context, req *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return s.unary(ctx, req)
}

func (s *service) StreamingOutputCall(req *pb.StreamingOutputCallRequest, stream pb.TestService_StreamingOutputCallServer) error {
	return s.server(req, stream)
}

func (s *service) StreamingInputCall(stream pb.TestService_StreamingInputCallServer) error {
	return s.client(stream)
}

func (s *service) FullDuplexCall(stream pb.TestService_FullDuplexCallServer) error {
	return s.bidi(stream)
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

// limitedBy returns a unary method that a rule limits inside of it, as a generated
// wrapper does.
func limitedBy(l *runtime.Limiter, r *runtime.Rule) func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return func(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		if _, err := l.Take(ctx, r.Limit(nil)); err != nil {
			return nil, err
		}
		return &pb.SimpleResponse{}, nil
	}
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
		raterpc.MethodLimit{Method: "/grpc.testing.TestService/UnaryCall", Rule: rule},
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
	s := &service{unary: func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) { return &pb.SimpleResponse{}, nil }}
	client := dial(t, s, options(raterpc.WithLimits(l, limits("*", "/grpc.testing.TestService/UnaryCall", "/grpc.testing.testService/UnaryCall", "/testing.TestService/*", "/other.v1.Things/Do")...)))
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

// The clients of calls that wait for their turns get UNAVAILABLE when the limiter is closed, so that a
// server which stops does not wait for them.
func TestLimiterClosed(t *testing.T) {
	waits := make(chan struct{}, 9)
	l := limiter(t, runtime.WithObserver(&observe.Observer{Wait: func(_ context.Context, ev observe.WaitEvent) {
		if ev.Waiting {
			waits <- struct{}{}
		}
	}}))
	waiting := rule(1, time.Hour)
	waiting.Wait = time.Hour
	client := dial(t, &service{unary: func(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		_, err := l.Take(ctx, waiting.Limit(nil))
		return &pb.SimpleResponse{}, err
	}}, rategrpc.ServerOptions())
	if _, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{}); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	go func() {
		_, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{})
		errs <- err
	}()
	<-waits
	_ = l.Close()
	if err := <-errs; status.Code(err) != codes.Unavailable || strings.Contains(err.Error(), "shop.Orders") {
		t.Error(err)
	}
}
