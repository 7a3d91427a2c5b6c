package kratosapi

import (
	"net"
	"testing"

	"github.com/go-kratos/kratos/v2/errors"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "github.com/rategen/rategen/examples/frameworks/grpcapi/routev1"
	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/runtime"
)

func TestHTTP(t *testing.T) { refused.HTTP(t, newServers(refused.Limiter(t)).http) }

func TestGRPC(t *testing.T) {
	err := second(t, refused.Limiter(t))
	if e := errors.FromError(err); e.Code != 429 || e.Reason != "RATE_LIMIT_EXCEEDED" {
		t.Errorf("code %d, reason %s; want 429 and RATE_LIMIT_EXCEEDED", e.Code, e.Reason)
	}
	for _, detail := range status.Convert(err).Details() {
		if _, ok := detail.(*errdetails.RetryInfo); ok {
			return
		}
	}
	t.Errorf("no RetryInfo in %v", err)
}

// second returns the error of a caller's second call.
func second(t *testing.T, limiter *runtime.Limiter) error {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServers(limiter).grpc
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := pb.NewGreeterClient(conn)
	if _, err := client.SayHello(t.Context(), &pb.HelloRequest{Name: "Ada"}); err != nil {
		t.Fatal(err)
	}
	_, err = client.SayHello(t.Context(), &pb.HelloRequest{Name: "Ada"})
	if status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("the second call: %v, want RESOURCE_EXHAUSTED", err)
	}
	return err
}
