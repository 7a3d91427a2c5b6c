// Package gatewayapi limits a service of gRPC that grpc-gateway calls in process, where no
// interceptor sees the calls. Temporal's interface stands for one of yours.
package gatewayapi

import (
	"context"
	"net/http"

	gateway "github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	api "go.temporal.io/api/workflowservice/v1"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// Namespaces has the methods of the service that have limits.
type Namespaces interface {
	// DescribeNamespace tells of a namespace.
	//
	//ratelimit:key=#request.GetNamespace() window=1h max=1
	DescribeNamespace(ctx context.Context, request *api.DescribeNamespaceRequest) (*api.DescribeNamespaceResponse, error)
}

// A limited is the service with those methods behind their limits.
type limited struct {
	api.WorkflowServiceServer
	namespaces *RateLimitedNamespaces
}

// DescribeNamespace hides the method of the service.
func (l limited) DescribeNamespace(ctx context.Context, request *api.DescribeNamespaceRequest) (*api.DescribeNamespaceResponse, error) {
	return l.namespaces.DescribeNamespace(ctx, request)
}

type plain struct {
	api.UnimplementedWorkflowServiceServer
}

func (plain) DescribeNamespace(context.Context, *api.DescribeNamespaceRequest) (*api.DescribeNamespaceResponse, error) {
	return &api.DescribeNamespaceResponse{}, nil
}

// Handler returns a gateway to the service.
func Handler(limiter *runtime.Limiter) (http.Handler, error) {
	service := plain{}
	mux := gateway.NewServeMux(gateway.WithErrorHandler(encodeError))
	server := limited{service, NewRateLimitedNamespaces(service, limiter)}
	return ratehttp.Middleware()(mux), api.RegisterWorkflowServiceHandlerServer(context.Background(), mux, server)
}

// encodeError answers refusals. Others are answered as before.
func encodeError(ctx context.Context, mux *gateway.ServeMux, m gateway.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	if !ratehttp.Error(w, r, err) {
		gateway.DefaultHTTPErrorHandler(ctx, mux, m, w, r, err)
	}
}
