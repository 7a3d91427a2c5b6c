package frontapi

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	api "go.temporal.io/api/workflowservice/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// A backend answers by the name that it is asked for.
type backend struct {
	api.UnimplementedWorkflowServiceServer
	errors map[string]error
}

func (b backend) DescribeNamespace(_ context.Context, r *api.DescribeNamespaceRequest) (*api.DescribeNamespaceResponse, error) {
	return &api.DescribeNamespaceResponse{}, b.errors[r.GetNamespace()]
}

func TestBackendRefuses(t *testing.T) {
	in := func(code codes.Code, after time.Duration) error {
		s, err := status.New(code, "too many orders").WithDetails(&errdetails.ErrorInfo{}, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
		if err != nil {
			t.Fatal(err)
		}
		return s.Err()
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	defer server.Stop()
	api.RegisterWorkflowServiceServer(server, backend{errors: map[string]error{
		"minute": in(codes.ResourceExhausted, time.Minute), "part": in(codes.ResourceExhausted, 1200*time.Millisecond),
		"large": status.Error(codes.ResourceExhausted, "too large"), "away": in(codes.Unavailable, time.Second),
		"missing": status.Error(codes.NotFound, "no such name"),
	}})
	go func() { _ = server.Serve(listener) }()
	handler, err := newHandler(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name           string
		plain, gateway int // statuses
		after          string
	}{
		{"fine", 200, 200, ""}, {"minute", 429, 429, "60"}, {"part", 429, 429, "2"},
		{"large", 500, 429, ""}, {"away", 503, 503, "1"}, {"missing", 500, 404, ""},
	} {
		for path, want := range map[string]int{"/names/": c.plain, "/api/v1/namespaces/": c.gateway} {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path+c.name, nil))
			if w.Code != want || w.Header().Get("Retry-After") != c.after {
				t.Errorf("%s%s: %d with Retry-After %q, want %d with %q", path, c.name, w.Code, w.Header().Get("Retry-After"), want, c.after)
			}
		}
	}
}
