// Package frontapi serves HTTP in front of a gRPC backend that has limits: by a handler, and by
// grpc-gateway. Temporal's interface stands for one of yours.
package frontapi

import (
	"context"
	"net/http"

	gateway "github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	api "go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"github.com/rategen/rategen/runtime/rategrpc"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// newHandler returns a handler of all requests, which calls a backend that is dialed with options.
func newHandler(backend string, options ...grpc.DialOption) (http.Handler, error) {
	conn, err := grpc.NewClient(backend, append(rategrpc.BackendOptions(), options...)...)
	if err != nil {
		return nil, err
	}
	mux, proxy, namespaces := http.NewServeMux(), gateway.NewServeMux(), api.NewWorkflowServiceClient(conn)
	mux.Handle("/api/", proxy)
	mux.HandleFunc("/names/{name}", func(w http.ResponseWriter, r *http.Request) {
		request := &api.DescribeNamespaceRequest{Namespace: r.PathValue("name")}
		if _, err := namespaces.DescribeNamespace(r.Context(), request); err != nil {
			http.Error(w, "the backend has failed", http.StatusInternalServerError)
		}
	})
	return ratehttp.Middleware()(mux), api.RegisterWorkflowServiceHandlerClient(context.Background(), proxy, namespaces)
}
