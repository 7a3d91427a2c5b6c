package main

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/rategen/rategen/examples/grpc/employee"
	pb "github.com/rategen/rategen/examples/grpc/employeev1"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// While Redis is away and limits fail closed, clients learn that the service is
// unavailable, and nothing of Redis.
func TestUnavailable(t *testing.T) {
	server := redistest.Start(t)
	limiter := runtime.New(runtime.NewRedisStore(server.Client(t)),
		runtime.WithFailurePolicy(runtime.FailClosed), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	defer func() { _ = limiter.Close() }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := employee.NewServer(&employee.Directory{Employees: []*pb.Employee{{Id: "1001"}}}, limiter)
	served := make(chan error, 1)
	go func() { served <- service.Serve(listener) }()
	defer func() {
		service.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	server.Kill()
	_, err = pb.NewEmployeeServiceClient(conn).GetEmployee(t.Context(), &pb.GetEmployeeRequest{Id: "1001"})
	st := status.Convert(err)
	if st.Code() != codes.Unavailable || strings.Contains(err.Error(), server.Addr) || len(st.Details()) != 1 {
		t.Fatalf("%v with %v", err, st.Details())
	}
	if info, ok := st.Details()[0].(*errdetails.ErrorInfo); !ok || info.GetReason() != "RATE_LIMITER_UNAVAILABLE" {
		t.Errorf("%v", st.Details())
	}
}
