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

	pb "github.com/rategen/rategen/internal/frameworks/grpcapi/routev1"
	"github.com/rategen/rategen/internal/frameworks/refused"
)

// Each call is made twice by one caller, and then once by another.
func TestRefused(t *testing.T) {
	conn := dial(t)
	greeter, guide := pb.NewGreeterClient(conn), pb.NewGuideClient(conn)
	for name, call := range map[string]func(ctx context.Context, caller string) error{
		"struct": func(ctx context.Context, caller string) error {
			_, err := greeter.SayHello(ctx, &pb.HelloRequest{Name: caller})
			return err
		},
		"unary": func(ctx context.Context, caller string) error {
			_, err := guide.GetFeature(ctx, &pb.Point{Name: caller})
			return err
		},
		"server stream": func(ctx context.Context, caller string) error {
			stream, err := guide.ListFeatures(ctx, &pb.Area{Name: caller})
			if err != nil {
				return err
			}
			return drain(stream.Recv)
		},
		"client stream": func(ctx context.Context, _ string) error {
			stream, err := guide.RecordRoute(ctx)
			if err != nil {
				return err
			}
			if err := stream.Send(&pb.Point{}); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			_, err = stream.CloseAndRecv()
			return err
		},
		"stream in both directions": func(ctx context.Context, _ string) error {
			stream, err := guide.Chat(ctx)
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
			by := func(caller string) error {
				return call(metadata.AppendToOutgoingContext(t.Context(), "caller", caller), caller)
			}
			if err := by("Ada"); err != nil {
				t.Fatal(err)
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

// dial returns a connection to a server.
func dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(guide{}, refused.Limiter(t))
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
