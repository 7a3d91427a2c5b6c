// Package connectapi limits a Connect server.
package connectapi

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	pb "github.com/rategen/rategen/examples/frameworks/grpcapi/routev1"
	"github.com/rategen/rategen/examples/frameworks/grpcapi/routev1/routev1connect"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateconnect"
)

//go:generate go tool rategen

type greeter struct {
	routev1connect.UnimplementedGreeterHandler
}

// SayHello greets somebody.
//
//ratelimit:key=#req.Msg.GetName() window=1h max=1
func (*greeter) SayHello(_ context.Context, req *connect.Request[pb.HelloRequest]) (*connect.Response[pb.HelloReply], error) {
	return connect.NewResponse(&pb.HelloReply{Text: "Hello " + req.Msg.GetName()}), nil
}

// newHandler returns a server whose methods are behind their limits.
func newHandler(limiter *runtime.Limiter) http.Handler {
	mux := http.NewServeMux()
	options := connect.WithInterceptors(rateconnect.NewInterceptor())
	mux.Handle(routev1connect.NewGreeterHandler(newRateLimitedGreeter(&greeter{}, limiter), options))
	return mux
}
