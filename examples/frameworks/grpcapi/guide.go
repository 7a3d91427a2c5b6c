package grpcapi

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	pb "github.com/rategen/rategen/examples/frameworks/grpcapi/routev1"
)

// caller returns who calls.
func caller(ctx context.Context) string {
	if names := metadata.ValueFromIncomingContext(ctx, "caller"); len(names) == 1 {
		return names[0]
	}
	return "unknown"
}

// A guide is a [Guide] without limits.
type guide struct {
	pb.UnimplementedGuideServer
}

func (guide) GetFeature(_ context.Context, point *pb.Point) (*pb.Feature, error) {
	return &pb.Feature{Name: point.GetName()}, nil
}

func (guide) ListFeatures(area *pb.Area, stream grpc.ServerStreamingServer[pb.Feature]) error {
	return stream.Send(&pb.Feature{Name: area.GetName()})
}

func (guide) RecordRoute(stream grpc.ClientStreamingServer[pb.Point, pb.Summary]) error {
	for n := int32(0); ; n++ {
		switch _, err := stream.Recv(); {
		case errors.Is(err, io.EOF):
			return stream.SendAndClose(&pb.Summary{Points: n})
		case err != nil:
			return err
		}
	}
}

func (guide) Chat(stream grpc.BidiStreamingServer[pb.Note, pb.Note]) error {
	for {
		note, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(note); err != nil {
			return err
		}
	}
}
