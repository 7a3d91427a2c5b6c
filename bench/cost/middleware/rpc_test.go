package middleware

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

const procedure = "/test.Service/Call"

// refusing starts a server that speaks HTTP/1 and HTTP/2 without TLS, and refuses all
// but one call in a minute.
func refusing(t *testing.T, max int64) *httptest.Server {
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	limit := ratehttp.RequestLimit{Limiter: limiter, Rule: &runtime.Rule{Name: "calls", Window: time.Minute, Max: max, Message: "100% 茶"}}
	h := limit.Wrap(connect.NewUnaryHandler(procedure, func(context.Context, *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
		return connect.NewResponse(new(emptypb.Empty)), nil
	}))
	server := httptest.NewUnstartedServer(h)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// A client of grpc-go gets its own kind of error, with the time to wait.
func TestClientOfGRPC(t *testing.T) {
	server := refusing(t, 1)
	conn, err := grpc.NewClient("passthrough:///"+server.Listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	call := func() error { return conn.Invoke(t.Context(), procedure, new(emptypb.Empty), new(emptypb.Empty)) }
	if err := call(); err != nil {
		t.Fatal(err)
	}
	got := status.Convert(call())
	if got.Code() != codes.ResourceExhausted || got.Message() != "100% 茶" || len(got.Details()) != 1 {
		t.Fatal(got)
	}
	info, ok := got.Details()[0].(*errdetails.RetryInfo)
	if !ok || info.RetryDelay.AsDuration() <= 0 || info.RetryDelay.AsDuration() > time.Minute {
		t.Error(got.Details())
	}
}

// Clients of connect-go get an error in each of its protocols.
func TestClientOfConnect(t *testing.T) {
	for name, opts := range map[string][]connect.ClientOption{
		"Connect": nil, "Connect by GET": {connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)},
		"gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()}, "gRPC in JSON": {connect.WithGRPC(), connect.WithProtoJSON()},
		"Connect in JSON": {connect.WithProtoJSON()},
	} {
		t.Run(name, func(t *testing.T) {
			for max, never := range map[int64]bool{0: true, 1: false} {
				server := refusing(t, max)
				transport := &http.Transport{Protocols: new(http.Protocols)}
				transport.Protocols.SetUnencryptedHTTP2(true)
				defer transport.CloseIdleConnections()
				client := connect.NewClient[emptypb.Empty, emptypb.Empty](&http.Client{Transport: transport}, server.URL+procedure, opts...)
				var err error
				for range 2 {
					_, err = client.CallUnary(t.Context(), connect.NewRequest(new(emptypb.Empty)))
				}
				var got *connect.Error
				if !errors.As(err, &got) || got.Code() != connect.CodeResourceExhausted || got.Message() != "100% 茶" {
					t.Fatal(err)
				}
				if details := got.Details(); never != (len(details) == 0) {
					t.Error(details)
				} else if !never {
					value, err := details[0].Value()
					info, ok := value.(*errdetails.RetryInfo)
					if err != nil || !ok || info.RetryDelay.AsDuration() <= 0 || info.RetryDelay.AsDuration() > time.Minute {
						t.Error(value, err)
					}
				}
				stream, err := client.CallServerStream(t.Context(), connect.NewRequest(new(emptypb.Empty)))
				if err == nil {
					for stream.Receive() {
					}
					err = stream.Err()
					_ = stream.Close()
				}
				if connect.CodeOf(err) != connect.CodeResourceExhausted {
					t.Errorf("a stream: %v", err)
				}
			}
		})
	}
}
