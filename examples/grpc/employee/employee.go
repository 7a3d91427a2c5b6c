// Package employee is the service of the example and its rate limits.
package employee

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/rategen/rategen/examples/grpc/employeev1"
)

//go:generate go tool rategen

// EmployeeService is the gRPC service, with a limit. [pb.EmployeeServiceServer] is
// generated: what is written there does not last.
type EmployeeService interface {
	// ListEmployees of the server has its limit in [Limits]: what it costs is known
	// while it is running.
	pb.EmployeeServiceServer

	// GetEmployee returns the employee with an id.
	//
	//ratelimit:key=#req.Id window=3s max=3 message="too fast, have a cup of tea"
	GetEmployee(ctx context.Context, req *pb.GetEmployeeRequest) (*pb.Employee, error)
}

// A Directory is a service with a fixed list of employees.
type Directory struct {
	pb.UnimplementedEmployeeServiceServer
	Employees []*pb.Employee
}

// GetEmployee implements [EmployeeService].
func (d *Directory) GetEmployee(_ context.Context, req *pb.GetEmployeeRequest) (*pb.Employee, error) {
	for _, e := range d.Employees {
		if e.GetId() == req.GetId() {
			return e, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "no employee %q", req.GetId())
}

// ListEmployees implements [EmployeeService].
func (d *Directory) ListEmployees(_ *pb.ListEmployeesRequest, stream grpc.ServerStreamingServer[pb.Employee]) error {
	for _, e := range d.Employees {
		if err := stream.Send(e); err != nil {
			return err
		}
	}
	return nil
}
