package rategrpc_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/raterpc"
)

// limits limits all methods of the service.
func limits(t *testing.T, max int64, on raterpc.Event) []grpc.ServerOption {
	return options(raterpc.WithPushback(time.Minute), raterpc.WithLimits(limiter(t), raterpc.MethodLimit{Method: "/grpc.testing.TestService/*", Rule: rule(max, time.Hour), On: on}))
}

// exhausted checks the end of a stream that a limit has refused. The fields stand in
// trailers only where there were no headers.
func exhausted(t *testing.T, stream grpc.ClientStream, err error, trailersOnly bool) {
	t.Helper()
	st := status.Convert(err)
	if st.Code() != codes.ResourceExhausted || detail[*errdetails.RetryInfo](st) == nil || detail[*errdetails.QuotaFailure](st) == nil {
		t.Errorf("ended with %v, %v", err, st.Details())
	}
	trailer := stream.Trailer()
	for _, field := range []string{"ratelimit", "ratelimit-policy", "grpc-retry-pushback-ms"} {
		if got := len(trailer.Get(field)) > 0; got != trailersOnly {
			t.Errorf("trailers have %s: %v", field, got)
		}
	}
	header, err := stream.Header()
	if fields := len(header.Get("ratelimit")) == 1 && len(header.Get("ratelimit-policy")) == 1; err != nil || fields == trailersOnly {
		t.Errorf("headers %v, %v", header, err)
	}
}

// respond sends n messages.
func respond(n int) func(pb.TestService_StreamingOutputCallServer) error {
	return func(stream pb.TestService_StreamingOutputCallServer) error {
		for range n {
			if err := stream.Send(&pb.StreamingOutputCallResponse{}); err != nil {
				return err
			}
		}
		return nil
	}
}

// receive receives all messages of a stream.
func receive(stream pb.TestService_StreamingOutputCallClient) (n int, err error) {
	for {
		if _, err := stream.Recv(); err != nil {
			return n, err
		}
		n++
	}
}

func TestServerStream(t *testing.T) {
	for name, c := range map[string]struct {
		on           raterpc.Event
		budget       int64
		received     [2]int // by each of two streams
		trailersOnly bool   // of the second
	}{
		"when opened": {raterpc.OnOpen, 1, [2]int{5, 0}, true},
		"by request":  {raterpc.OnReceive, 1, [2]int{5, 0}, true},
		"by message":  {raterpc.OnSend, 7, [2]int{5, 2}, false},
		"by both":     {raterpc.OnOpen | raterpc.OnSend, 6, [2]int{5, 0}, true},
	} {
		t.Run(name, func(t *testing.T) {
			client := dial(t, &service{server: respond(5)}, limits(t, c.budget, c.on))
			for i, want := range c.received {
				stream, err := client.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{})
				limittest.OK(t, err)
				n, err := receive(stream)
				limittest.Equal(t, "messages", n, want)
				if i > 0 {
					exhausted(t, stream, err, c.trailersOnly)
				} else if !errors.Is(err, io.EOF) {
					t.Error(err)
				}
			}
		})
	}
}

// A stream that sends nothing, and one whose handler sends the headers itself, have
// the fields too.
func TestStreamHeaders(t *testing.T) {
	for name, handler := range map[string]func(pb.TestService_StreamingOutputCallServer) error{
		"empty": respond(0),
		"sent early": func(stream pb.TestService_StreamingOutputCallServer) error {
			return stream.SendHeader(metadata.Pairs("request-id", "1"))
		},
	} {
		client := dial(t, &service{server: handler}, limits(t, 1, raterpc.OnOpen))
		stream, err := client.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{})
		limittest.OK(t, err)
		_, ended := receive(stream)
		if header, err := stream.Header(); err != nil || len(header.Get("ratelimit")) != 1 || !errors.Is(ended, io.EOF) {
			t.Errorf("%s: headers %v, %v, %v", name, header, err, ended)
		}
	}
}

// A handler may tell its client of a refused message, and go on.
func TestBidiStream(t *testing.T) {
	echo := func(stream pb.TestService_FullDuplexCallServer) error {
		for {
			_, err := stream.Recv()
			if err != nil && !errors.Is(err, runtime.ErrLimited) {
				return nil
			}
			answer := &pb.StreamingOutputCallResponse{Payload: &pb.Payload{Body: fmt.Appendf(nil, "%t", err == nil)}}
			if err := stream.Send(answer); err != nil {
				return err
			}
		}
	}
	client := dial(t, &service{bidi: echo}, limits(t, 2, raterpc.OnReceive))
	stream, err := client.FullDuplexCall(t.Context())
	limittest.OK(t, err)
	for _, admitted := range []string{"true", "true", "false", "false"} {
		limittest.OK(t, stream.Send(&pb.StreamingOutputCallRequest{}))
		resp, err := stream.Recv()
		limittest.OK(t, err)
		limittest.Equal(t, "admitted", string(resp.Payload.Body), admitted)
	}
	limittest.OK(t, stream.CloseSend())
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
}
