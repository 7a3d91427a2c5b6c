package kratosapi

import (
	"context"

	khttp "github.com/go-kratos/kratos/v2/transport/http"

	pb "github.com/rategen/rategen/examples/frameworks/grpcapi/routev1"
)

// This file has the shape of what protoc-gen-go-http makes of a service.

// A GreeterHTTPServer is the server of the service Greeter over HTTP.
type GreeterHTTPServer interface {
	SayHello(ctx context.Context, in *pb.HelloRequest) (*pb.HelloReply, error)
}

// RegisterGreeterHTTPServer adds the methods of a server to the routes of s.
func RegisterGreeterHTTPServer(s *khttp.Server, server GreeterHTTPServer) {
	s.Route("/").GET("/orders/{name}", func(ctx khttp.Context) error {
		var in pb.HelloRequest
		if err := ctx.BindVars(&in); err != nil {
			return err
		}
		khttp.SetOperation(ctx, pb.Greeter_SayHello_FullMethodName)
		handle := ctx.Middleware(func(ctx context.Context, req any) (any, error) {
			return server.SayHello(ctx, req.(*pb.HelloRequest))
		})
		out, err := handle(ctx, &in)
		if err != nil {
			return err
		}
		return ctx.String(200, out.(*pb.HelloReply).GetText())
	})
}
