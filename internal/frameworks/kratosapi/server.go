// Package kratosapi limits a service of Kratos over HTTP and gRPC.
package kratosapi

import (
	"context"
	"net/http"

	"github.com/go-kratos/kratos/v2/errors"
	kgrpc "github.com/go-kratos/kratos/v2/transport/grpc"
	khttp "github.com/go-kratos/kratos/v2/transport/http"

	pb "github.com/rategen/rategen/internal/frameworks/grpcapi/routev1"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rategrpc"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

type greeter struct {
	pb.UnimplementedGreeterServer
}

// SayHello greets somebody.
//
//ratelimit:key=#in.GetName() window=1h max=1
func (*greeter) SayHello(_ context.Context, in *pb.HelloRequest) (*pb.HelloReply, error) {
	return &pb.HelloReply{Text: "order " + in.GetName()}, nil
}

// asKratos gives refusals the form of errors of Kratos.
func asKratos(_ context.Context, err error) error {
	return errors.New(http.StatusTooManyRequests, "RATE_LIMITED", err.Error()).WithCause(err)
}

// newServers returns the servers of the service behind its limits.
func newServers(limiter *runtime.Limiter) (*khttp.Server, *kgrpc.Server) {
	service := newRateLimitedGreeter(&greeter{}, limiter)
	overHTTP := khttp.NewServer(
		khttp.Filter(ratehttp.Middleware()),
		khttp.ErrorEncoder(func(w http.ResponseWriter, r *http.Request, err error) {
			if !ratehttp.Error(w, r, err) {
				khttp.DefaultErrorEncoder(w, r, err)
			}
		}),
	)
	RegisterGreeterHTTPServer(overHTTP, service)
	overGRPC := kgrpc.NewServer(kgrpc.Options(rategrpc.ServerOptions()...))
	pb.RegisterGreeterServer(overGRPC, service)
	return overHTTP, overGRPC
}
