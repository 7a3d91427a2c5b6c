// Package kratosapi limits a service of Kratos over HTTP and gRPC.
package kratosapi

import (
	"context"
	kgrpc "github.com/go-kratos/kratos/v2/transport/grpc"
	khttp "github.com/go-kratos/kratos/v2/transport/http"

	pb "github.com/rategen/rategen/examples/frameworks/grpcapi/routev1"
	"github.com/rategen/rategen/runtime/ratekratos"
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

// servers are the servers of the service.
type servers struct {
	http *khttp.Server
	grpc *kgrpc.Server
}

func newGreeter() *greeter { return new(greeter) }

func newHTTPServer(service pb.GreeterServer) *khttp.Server {
	server := khttp.NewServer(ratekratos.HTTP()...)
	RegisterGreeterHTTPServer(server, service)
	return server
}

func newGRPCServer(service pb.GreeterServer) *kgrpc.Server {
	server := kgrpc.NewServer(ratekratos.GRPC()...)
	pb.RegisterGreeterServer(server, service)
	return server
}
