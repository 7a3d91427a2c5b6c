// Package grpcapi limits gRPC servers: a struct that embeds the generated
// Unimplemented…Server, and an interface that embeds the generated …Server.
package grpcapi

import (
	"context"

	"google.golang.org/grpc"

	pb "github.com/rategen/rategen/examples/frameworks/grpcapi/routev1"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rategrpc"
)

//go:generate go tool rategen

type greeter struct {
	pb.UnimplementedGreeterServer
}

// SayHello greets somebody.
//
//ratelimit:key=#in.GetName() window=1h max=1 message="that was a greeting too many"
func (*greeter) SayHello(_ context.Context, in *pb.HelloRequest) (*pb.HelloReply, error) {
	return &pb.HelloReply{Text: "Hello " + in.GetName()}, nil
}

// A Guide is a server with methods of every kind.
type Guide interface {
	pb.GuideServer

	//ratelimit:key=#point.GetName() window=1h max=1
	GetFeature(ctx context.Context, point *pb.Point) (*pb.Feature, error)

	//ratelimit:key=#area.GetName() window=1h max=1
	ListFeatures(area *pb.Area, stream grpc.ServerStreamingServer[pb.Feature]) error

	//ratelimit:window=1h max=1 key=caller(#stream.Context())
	RecordRoute(stream grpc.ClientStreamingServer[pb.Point, pb.Summary]) error

	//ratelimit:window=1h max=1 key=caller(#stream.Context())
	Chat(stream grpc.BidiStreamingServer[pb.Note, pb.Note]) error
}

// newServer returns a server whose methods are behind their limits.
func newServer(guide Guide, limiter *runtime.Limiter) *grpc.Server {
	server := grpc.NewServer(rategrpc.ServerOptions()...)
	pb.RegisterGreeterServer(server, newRateLimitedGreeter(&greeter{}, limiter))
	pb.RegisterGuideServer(server, NewRateLimitedGuide(guide, limiter))
	return server
}
