package employee

import (
	"time"

	"google.golang.org/grpc"

	pb "github.com/rategen/rategen/examples/grpc/employeev1"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rategrpc"
	"github.com/rategen/rategen/runtime/raterpc"
)

// listed bounds what is read of the whole list, by all callers together.
var listed = &runtime.Rule{Name: "listed-employees", Window: time.Minute, Max: 4, Message: "the list was read enough for now"}

// Limits are the limits without a directive.
func Limits(limiter *runtime.Limiter) raterpc.Option {
	return raterpc.WithLimits(limiter, raterpc.MethodLimit{
		Method: pb.EmployeeService_ListEmployees_FullMethodName,
		Rule:   listed,
		On:     raterpc.OnSend,
	})
}

// NewServer returns a gRPC server of a service behind its rate limits.
func NewServer(service EmployeeService, limiter *runtime.Limiter) *grpc.Server {
	s := grpc.NewServer(rategrpc.ServerOptions(Limits(limiter), raterpc.WithPushback(10*time.Second))...)
	pb.RegisterEmployeeServiceServer(s, NewRateLimitedEmployeeService(service, limiter))
	return s
}
