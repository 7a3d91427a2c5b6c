package grpcapi

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/rategen/rategen/examples/frameworks/grpcapi/routev1"
	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/runtime"
)

// Each call is made twice by one caller, and then once by another.
func TestRefused(t *testing.T) {
	conn := dial(t, refused.Limiter(t))
	greeter, guide := pb.NewGreeterClient(conn), pb.NewGuideClient(conn)
	for name, call := range map[string]func(ctx context.Context, caller string, header grpc.CallOption) error{
		"struct": func(ctx context.Context, caller string, header grpc.CallOption) error {
			_, err := greeter.SayHello(ctx, &pb.HelloRequest{Name: caller}, header)
			return err
		},
		"unary": func(ctx context.Context, caller string, header grpc.CallOption) error {
			_, err := guide.GetFeature(ctx, &pb.Point{Name: caller}, header)
			return err
		},
		"server stream": func(ctx context.Context, caller string, header grpc.CallOption) error {
			stream, err := guide.ListFeatures(ctx, &pb.Area{Name: caller}, header)
			if err != nil {
				return err
			}
			return drain(stream.Recv)
		},
		"client stream": func(ctx context.Context, _ string, header grpc.CallOption) error {
			stream, err := guide.RecordRoute(ctx, header)
			if err != nil {
				return err
			}
			if err := stream.Send(&pb.Point{}); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			_, err = stream.CloseAndRecv()
			return err
		},
		"stream in both directions": func(ctx context.Context, _ string, header grpc.CallOption) error {
			stream, err := guide.Chat(ctx, header)
			if err != nil {
				return err
			}
			if err := stream.Send(&pb.Note{Text: "hello"}); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			if err := stream.CloseSend(); err != nil {
				return err
			}
			return drain(stream.Recv)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var header metadata.MD
			by := func(caller string) error {
				ctx := metadata.AppendToOutgoingContext(t.Context(), "caller", caller)
				return call(ctx, caller, grpc.Header(&header))
			}
			if err := by("Ada"); err != nil {
				t.Fatal(err)
			}
			// The interceptor learns of a limit that has the context of the call only.
			if header.Get("ratelimit") == nil {
				t.Errorf("no field ratelimit in %v", header)
			}
			exhausted(t, by("Ada"))
			if err := by("Lin"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// exhausted checks what a client is told.
func exhausted(t *testing.T, err error) {
	t.Helper()
	if status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("the second call: %v, want RESOURCE_EXHAUSTED", err)
	}
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			if d := info.GetRetryDelay().AsDuration(); d <= 0 || d > time.Hour {
				t.Errorf("RetryInfo of %v, want up to 1h", d)
			}
			return
		}
	}
	t.Errorf("no RetryInfo in %v", err)
}

// drain reads a stream to its end.
func drain[M any](receive func() (M, error)) error {
	for {
		if _, err := receive(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestUnavailable(t *testing.T) {
	_, err := pb.NewGreeterClient(dial(t, refused.Down(t))).SayHello(t.Context(), &pb.HelloRequest{Name: "Ada"})
	if status.Code(err) != codes.Unavailable || len(status.Convert(err).Details()) != 1 {
		t.Errorf("without Redis: %v", err)
	}
	refused.NoAddress(t, status.Convert(err).Message())
}

// dial returns a connection to a server.
func dial(t *testing.T, limiter *runtime.Limiter) *grpc.ClientConn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(guide{}, limiter)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}
