// Package guide is the service of the example, which is that of gRPC's own tutorial, and its rate
// limits.
package guide

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/examples/route_guide/routeguide"
	"google.golang.org/grpc/status"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rategrpc"
	"github.com/rategen/rategen/runtime/raterpc"
)

//go:generate go tool rategen

// RouteGuide is the gRPC service, with a limit. [pb.RouteGuideServer] is generated: what is
// written there does not last.
type RouteGuide interface {
	// ListFeatures of the server has its limit in [Limits]: what it costs is known
	// while it is running.
	pb.RouteGuideServer

	// GetFeature returns the feature at a point.
	//
	//ratelimit:key=#point.Latitude,#point.Longitude window=3s max=3 message="too fast, have a cup of tea"
	GetFeature(ctx context.Context, point *pb.Point) (*pb.Feature, error)
}

// A Map is a service with fixed features.
type Map struct {
	pb.UnimplementedRouteGuideServer
	Features []*pb.Feature
}

// GetFeature implements [RouteGuide].
func (m *Map) GetFeature(_ context.Context, point *pb.Point) (*pb.Feature, error) {
	for _, f := range m.Features {
		if f.Location.Latitude == point.GetLatitude() && f.Location.Longitude == point.GetLongitude() {
			return f, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "nothing is at %v", point)
}

// ListFeatures implements [RouteGuide].
func (m *Map) ListFeatures(_ *pb.Rectangle, stream grpc.ServerStreamingServer[pb.Feature]) error {
	for _, f := range m.Features {
		if err := stream.Send(f); err != nil {
			return err
		}
	}
	return nil
}

// listed bounds what is read of the whole map, by all callers together.
var listed = &runtime.Rule{Name: "listed-features", Window: time.Minute, Max: 4, Message: "the map was read enough for now"}

// Limits are the limits without a directive.
func Limits(limiter *runtime.Limiter) raterpc.Option {
	return raterpc.WithLimits(limiter, raterpc.MethodLimit{
		Method: pb.RouteGuide_ListFeatures_FullMethodName,
		Rule:   listed,
		On:     raterpc.OnSend,
	})
}

// NewServer returns a gRPC server of a service behind its rate limits.
func NewServer(service RouteGuide, limiter *runtime.Limiter) *grpc.Server {
	s := grpc.NewServer(rategrpc.ServerOptions(Limits(limiter), raterpc.WithPushback(10*time.Second))...)
	pb.RegisterRouteGuideServer(s, NewRateLimitedRouteGuide(service, limiter))
	return s
}
