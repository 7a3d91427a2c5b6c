package ratekratos_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-kratos/kratos/v2/errors"
	kgrpc "github.com/go-kratos/kratos/v2/transport/grpc"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/rategen/rategen/internal/testkit/wire"
	"github.com/rategen/rategen/runtime/ratehttp"
	"github.com/rategen/rategen/runtime/ratekratos"
)

// newHTTP returns a server with the routes that package wire asks for.
func newHTTP(service *wire.Service, opts ...ratehttp.Option) *khttp.Server {
	server := khttp.NewServer(append(ratekratos.HTTP(), khttp.Filter(cors, ratekratos.Filter(opts...)))...)
	route := server.Route("/")
	for _, r := range service.Routes(func(code int) error { return errors.New(code, "STATUS", "internal") }) {
		var filters []khttp.FilterFunc
		if r.Path == wire.Login {
			filters = append(filters, service.Login().Wrap)
		}
		do := func(c khttp.Context) error {
			return r.Do(wire.Call{
				Context: c.Request().Context(), Param: wire.First(c.Vars().Get), Query: wire.First(c.Query().Get), Set: c.Response().Header().Set,
				Send: func(text string) error { return c.String(200, text) },
			})
		}
		route.Handle(r.Method, strings.ReplaceAll(r.Path, ":id", "{id}"), do, filters...)
		if r.Path == "/hidden/:id" {
			route.Handle(r.Method, "/operation/{id}", func(c khttp.Context) error {
				khttp.SetOperation(c, "/shop.Orders/Show") // as generated code does
				return do(c)
			})
		}
	}
	return server
}

func TestHTTPOnTheWire(t *testing.T) {
	server := httptest.NewServer(newHTTP(wire.NewService(t)))
	t.Cleanup(server.Close)
	wire.Check(t, server.URL)
}

// TestHidden wants the log to name what hides a refusal.
func TestHidden(t *testing.T) {
	service := wire.NewService(t)
	serve := func(opts ...ratehttp.Option) string {
		server := httptest.NewServer(newHTTP(service, opts...))
		t.Cleanup(server.Close)
		return server.URL
	}
	service.CheckHidden(t, serve, "GET /hidden/{id}")
	url := serve()
	for _, want := range []int{200, 429} {
		if resp, err := http.Get(url + "/operation/5"); err != nil || resp.Body.Close() != nil || resp.StatusCode != want {
			t.Error(resp, err)
		}
	}
	service.CheckLogged(t, "/shop.Orders/Show")
}

// cors is what a filter for CORS does.
func cors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", wire.Origin)
		w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
		if r.Method == http.MethodOptions {
			w.WriteHeader(204)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// TestClients wants clients of Kratos to get the reason and the time to come back.
func TestClients(t *testing.T) {
	service := wire.NewService(t)
	web := httptest.NewServer(newHTTP(service))
	t.Cleanup(web.Close)
	client, err := khttp.NewClient(t.Context(), khttp.WithEndpoint(strings.TrimPrefix(web.URL, "http://")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	get := func(path string) *errors.Error {
		var body string
		return errors.FromError(client.Invoke(t.Context(), "GET", path, nil, &body))
	}
	_, _ = service.Show(t.Context(), "web")
	if e := get("/orders/web"); e.Code != 429 || e.Reason != "RATE_LIMIT_EXCEEDED" || e.Metadata["retry_after"] != "3600" || e.Metadata["policy"] != "Orders.Show" {
		t.Errorf("HTTP, refused: %+v", e)
	}
	if e := get("/down"); e.Code != 503 || e.Reason != "RATE_LIMITER_UNAVAILABLE" {
		t.Errorf("HTTP, unavailable: %+v", e)
	}

	greeter := dial(t, service)
	_, _ = service.Show(t.Context(), "rpc")
	_, err = greeter.UnaryCall(t.Context(), &pb.SimpleRequest{})
	if e := errors.FromError(err); e.Code != 429 || e.Reason != "RATE_LIMIT_EXCEEDED" || e.Metadata["policy"] != "Orders.Show" {
		t.Errorf("gRPC, refused: %+v", e)
	}
	var wait *errdetails.RetryInfo
	for _, d := range status.Convert(err).Details() {
		if d, ok := d.(*errdetails.RetryInfo); ok {
			wait = d
		}
	}
	if wait.GetRetryDelay().GetSeconds() < 3500 {
		t.Errorf("gRPC: RetryInfo %v", wait)
	}
	_, err = greeter.EmptyCall(t.Context(), &pb.Empty{})
	if e := errors.FromError(err); e.Code != 503 || e.Reason != "RATE_LIMITER_UNAVAILABLE" || strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("gRPC, unavailable: %+v", e)
	}
}

type greeter struct {
	pb.UnimplementedTestServiceServer
	service *wire.Service
}

func (g *greeter) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	_, err := g.service.Show(ctx, "rpc")
	return &pb.SimpleResponse{}, err
}

func (g *greeter) EmptyCall(ctx context.Context, _ *pb.Empty) (*pb.Empty, error) {
	return &pb.Empty{}, g.service.Down(ctx)
}

func dial(t *testing.T, service *wire.Service) pb.TestServiceClient {
	server := kgrpc.NewServer(ratekratos.GRPC()...)
	pb.RegisterTestServiceServer(server, &greeter{service: service})
	url := wire.Serve(t, server.Serve, func() error { server.Server.Stop(); return nil })
	conn, err := grpc.Dial(strings.TrimPrefix(url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return pb.NewTestServiceClient(conn)
}
