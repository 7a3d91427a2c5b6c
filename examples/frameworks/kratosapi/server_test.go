package kratosapi

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/go-kratos/kratos/v2/errors"
	kgrpc "github.com/go-kratos/kratos/v2/transport/grpc"
	khttp "github.com/go-kratos/kratos/v2/transport/http"

	pb "github.com/rategen/rategen/examples/frameworks/grpcapi/routev1"
	"github.com/rategen/rategen/examples/frameworks/refused"
)

// A client of Kratos gets the reason and the time to come back, over either transport, and
// tells a refusal from an outage.
func TestClients(t *testing.T) {
	for name, dial := range map[string]func(*testing.T, *servers) func(context.Context) error{"HTTP": overHTTP, "gRPC": overGRPC} {
		t.Run(name, func(t *testing.T) {
			hello := dial(t, newServers(refused.Limiter(t)))
			if err := hello(t.Context()); err != nil {
				t.Fatal(err)
			}
			e := errors.FromError(hello(t.Context()))
			if s, err := strconv.Atoi(e.Metadata["retry_after"]); e.Code != 429 || e.Reason != "RATE_LIMIT_EXCEEDED" || err != nil || s < 1 || s > 3600 {
				t.Errorf("refused: %v; want 429, the reason, and 1 to 3600 seconds", e)
			}
			e = errors.FromError(dial(t, newServers(refused.Down(t)))(t.Context()))
			if e.Code != 503 || e.Reason != "RATE_LIMITER_UNAVAILABLE" {
				t.Errorf("without Redis: %v; want 503 and its reason", e)
			}
			refused.NoAddress(t, e.Message)
		})
	}
}

// Clients that are not of Kratos read the status and the fields.
func TestHTTP(t *testing.T) {
	server := newServers(refused.Limiter(t)).http
	var answer *httptest.ResponseRecorder
	for range 2 {
		answer = httptest.NewRecorder()
		server.ServeHTTP(answer, httptest.NewRequest("GET", "/orders/1", nil))
	}
	if h := answer.Header(); answer.Code != http.StatusTooManyRequests || h.Get("Retry-After") == "" || h.Get("RateLimit") == "" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, %v", answer.Code, h)
	}
}

func overHTTP(t *testing.T, s *servers) func(context.Context) error {
	server := httptest.NewServer(s.http)
	t.Cleanup(server.Close)
	client, err := khttp.NewClient(t.Context(), khttp.WithEndpoint(server.URL),
		khttp.WithResponseDecoder(func(context.Context, *http.Response, any) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return func(ctx context.Context) error {
		return client.Invoke(ctx, http.MethodGet, "/orders/1", nil, nil)
	}
}

func overGRPC(t *testing.T, s *servers) func(context.Context) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.grpc.Serve(listener) }()
	t.Cleanup(func() {
		s.grpc.Server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	conn, err := kgrpc.DialInsecure(t.Context(), kgrpc.WithEndpoint(listener.Addr().String()), kgrpc.WithHealthCheck(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return func(ctx context.Context) error {
		_, err := pb.NewGreeterClient(conn).SayHello(ctx, &pb.HelloRequest{Name: "Ada"})
		return err
	}
}
