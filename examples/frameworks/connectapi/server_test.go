package connectapi

import (
	"errors"
	"net/http/httptest"
	"strconv"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	pb "github.com/rategen/rategen/examples/frameworks/grpcapi/routev1"
	"github.com/rategen/rategen/examples/frameworks/grpcapi/routev1/routev1connect"
	"github.com/rategen/rategen/examples/frameworks/refused"
)

func TestRefused(t *testing.T) {
	for name, options := range map[string][]connect.ClientOption{
		"connect": nil,
		"grpc":    {connect.WithGRPC()},
		"web":     {connect.WithGRPCWeb()},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(newHandler(refused.Limiter(t)))
			server.EnableHTTP2 = true
			server.StartTLS()
			t.Cleanup(server.Close)
			client := routev1connect.NewGreeterClient(server.Client(), server.URL, options...)
			hello := func(name string) error {
				_, err := client.SayHello(t.Context(), connect.NewRequest(&pb.HelloRequest{Name: name}))
				return err
			}
			if err := hello("Ada"); err != nil {
				t.Fatal(err)
			}
			exhausted(t, hello("Ada"))
			if err := hello("Lin"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestUnavailable(t *testing.T) {
	server := httptest.NewServer(newHandler(refused.Down(t)))
	t.Cleanup(server.Close)
	_, err := routev1connect.NewGreeterClient(server.Client(), server.URL).SayHello(t.Context(), connect.NewRequest(&pb.HelloRequest{Name: "Ada"}))
	if connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("without Redis: %v", err)
	}
	refused.NoAddress(t, err.Error())
}

// exhausted checks what a client is told.
func exhausted(t *testing.T, err error) {
	t.Helper()
	var refusal *connect.Error
	if !errors.As(err, &refusal) || refusal.Code() != connect.CodeResourceExhausted {
		t.Fatalf("the second call: %v, want resource_exhausted", err)
	}
	if s, err := strconv.Atoi(refusal.Meta().Get("Retry-After")); err != nil || s < 1 || s > 3600 {
		t.Errorf("Retry-After %q, want 1 to 3600", refusal.Meta().Get("Retry-After"))
	}
	for _, detail := range refusal.Details() {
		if value, err := detail.Value(); err == nil {
			if _, ok := value.(*errdetails.RetryInfo); ok {
				return
			}
		}
	}
	t.Errorf("no RetryInfo in %v", refusal)
}
