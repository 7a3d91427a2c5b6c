//go:build wireinject

package kratosapi

import (
	"github.com/google/wire"

	pb "github.com/rategen/rategen/examples/frameworks/grpcapi/routev1"
	"github.com/rategen/rategen/runtime"
)

// newServers returns the servers of the service behind its limits.
func newServers(limiter *runtime.Limiter) *servers {
	panic(wire.Build(
		newGreeter,
		newRateLimitedGreeter,
		wire.Bind(new(greeterInterface), new(*greeter)),
		wire.Bind(new(pb.GreeterServer), new(*rateLimitedGreeter)),
		newHTTPServer,
		newGRPCServer,
		wire.Struct(new(servers), "*"),
	))
}
