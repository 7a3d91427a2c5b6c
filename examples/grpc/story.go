package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/examples/route_guide/routeguide"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// retryPolicy makes a client retry calls that a limit has refused. A server that says
// when to come back overrides the backoff.
const retryPolicy = `{"methodConfig": [{"name": [{"service": "routeguide.RouteGuide"}], "retryPolicy": {
	"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
	"retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`

// The points that clients ask for.
var lighthouse, teaHouse = &pb.Point{Latitude: 1}, &pb.Point{Latitude: 2}

// A story is what clients see.
type story struct {
	ctx      context.Context
	out      io.Writer
	addr     string
	attempts attempts
}

func (s *story) printf(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

// withClient tells a part of the story with a client.
func (s *story) withClient(tell func(pb.RouteGuideClient) error, opts ...grpc.DialOption) error {
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStatsHandler(&s.attempts))
	conn, err := grpc.NewClient(s.addr, opts...)
	if err != nil {
		return err
	}
	defer conn.Close()
	return tell(pb.NewRouteGuideClient(conn))
}

// refused calls until a limit refuses, and shows what it is told.
func (s *story) refused(client pb.RouteGuideClient) error {
	s.printf("A client without a retry policy\n")
	for i := 1; ; i++ {
		var header, trailer metadata.MD
		f, err := client.GetFeature(s.ctx, lighthouse, grpc.Header(&header), grpc.Trailer(&trailer))
		if err != nil {
			s.printf("call %d  %v\n", i, err)
			s.fields("trailer", trailer)
			s.details(err)
			return nil
		}
		s.printf("call %d  %s\n", i, f.GetName())
		s.fields("header", header)
	}
}

// retried calls until the server has told the client to wait, and waited for it.
func (s *story) retried(client pb.RouteGuideClient) error {
	s.printf("\nA client with a retry policy\n")
	for i := 1; ; i++ {
		start := time.Now()
		s.attempts.n.Store(0)
		f, err := client.GetFeature(s.ctx, teaHouse)
		if err != nil {
			return err
		}
		if n := s.attempts.n.Load(); n > 1 {
			s.printf("call %d  %s, %d attempts, after %v\n", i, f.GetName(), n, time.Since(start).Round(100*time.Millisecond))
			return nil
		}
		s.printf("call %d  %s\n", i, f.GetName())
	}
}

// streamed reads a stream twice. Its limit counts messages.
func (s *story) streamed(client pb.RouteGuideClient) error {
	s.printf("\nA stream whose messages are limited\n")
	for i := 1; i <= 2; i++ {
		stream, err := client.ListFeatures(s.ctx, &pb.Rectangle{})
		if err != nil {
			return err
		}
		n := 0
		for ; ; n++ {
			if _, err = stream.Recv(); err != nil {
				break
			}
		}
		if errors.Is(err, io.EOF) {
			s.printf("stream %d  %d features\n", i, n)
		} else {
			s.printf("stream %d  %d features, then %v\n", i, n, err)
		}
	}
	return nil
}

func (s *story) fields(in string, md metadata.MD) {
	for _, name := range []string{"ratelimit", "ratelimit-policy", "grpc-retry-pushback-ms"} {
		for _, value := range md.Get(name) {
			s.printf("        %s %s: %s\n", in, name, value)
		}
	}
}

func (s *story) details(err error) {
	for _, d := range status.Convert(err).Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			s.printf("        ErrorInfo    %s of %s\n", d.GetReason(), d.GetDomain())
		case *errdetails.QuotaFailure:
			for _, v := range d.GetViolations() {
				s.printf("        QuotaFailure %s, %d: %s\n", v.GetQuotaId(), v.GetQuotaValue(), v.GetDescription())
			}
		case *errdetails.RetryInfo:
			s.printf("        RetryInfo    %v\n", d.GetRetryDelay().AsDuration().Round(100*time.Millisecond))
		}
	}
}

// attempts counts how often a client has sent a call.
type attempts struct{ n atomic.Int64 }

func (a *attempts) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.Begin); ok {
		a.n.Add(1)
	}
}

func (*attempts) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*attempts) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*attempts) HandleConn(context.Context, stats.ConnStats)                       {}
