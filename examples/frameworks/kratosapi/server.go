// Package kratosapi limits a service of Kratos over HTTP and gRPC.
package kratosapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-kratos/kratos/v2/errors"
	kgrpc "github.com/go-kratos/kratos/v2/transport/grpc"
	khttp "github.com/go-kratos/kratos/v2/transport/http"

	pb "github.com/rategen/rategen/examples/frameworks/grpcapi/routev1"
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

// encode answers refusals as errors of Kratos: with a reason, and the seconds to wait as
// metadata, as over gRPC.
func encode(w http.ResponseWriter, r *http.Request, a ratehttp.Answer) {
	e := errors.New(a.Status, a.Reason, a.Detail)
	if a.RetryAfter > 0 {
		e = e.WithMetadata(map[string]string{"retry_after": strconv.FormatInt(a.RetryAfter, 10)})
	}
	khttp.DefaultErrorEncoder(w, r, e)
}

// servers are the servers of the service.
type servers struct {
	http *khttp.Server
	grpc *kgrpc.Server
}

func newGreeter() *greeter { return new(greeter) }

func newHTTPServer(service pb.GreeterServer) *khttp.Server {
	server := khttp.NewServer(
		khttp.Filter(ratehttp.Middleware(ratehttp.WithAnswer(encode))),
		khttp.ErrorEncoder(func(w http.ResponseWriter, r *http.Request, err error) {
			if !ratehttp.Error(w, r, err) {
				khttp.DefaultErrorEncoder(w, r, err)
			}
		}),
	)
	RegisterGreeterHTTPServer(server, service)
	return server
}

func newGRPCServer(service pb.GreeterServer) *kgrpc.Server {
	server := kgrpc.NewServer(kgrpc.Options(rategrpc.ServerOptions()...))
	pb.RegisterGreeterServer(server, service)
	return server
}
