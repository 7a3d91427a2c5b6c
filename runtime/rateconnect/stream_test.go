package rateconnect_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"connectrpc.com/connect"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/raterpc"
)

// exhausted checks the end of a stream that a limit has refused.
func exhausted(t *testing.T, err error) {
	t.Helper()
	found := details(t, err)
	if connect.CodeOf(err) != connect.CodeResourceExhausted || found["google.rpc.RetryInfo"] == nil || found["google.rpc.QuotaFailure"] == nil || meta(err).Get("Retry-After") == "" {
		t.Errorf("ended with %v, %v, %v", err, found, meta(err))
	}
}

func TestServerStream(t *testing.T) {
	list := func(_ context.Context, _ *connect.Request[text], stream *connect.ServerStream[text]) error {
		for range 5 {
			if err := stream.Send(&text{}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, test := range []struct {
		name     string
		on       raterpc.Event
		budget   int64
		received [2]int // by each of two streams
	}{
		{"when opened", raterpc.OnOpen, 1, [2]int{5, 0}},
		{"by request", raterpc.OnReceive, 1, [2]int{5, 0}},
		{"by message", raterpc.OnSend, 7, [2]int{5, 2}},
		{"by both", raterpc.OnOpen | raterpc.OnSend, 6, [2]int{5, 0}},
	} {
		for _, w := range ways {
			t.Run(test.name+", "+w.name, func(t *testing.T) {
				c := client(t, w, serve(t, &orders{list: list}, limits(t, test.budget, test.on)), serverStream)
				for i, want := range test.received {
					stream, err := c.CallServerStream(t.Context(), connect.NewRequest(&text{}))
					limittest.OK(t, err)
					n := 0
					for stream.Receive() {
						n++
					}
					if n != want {
						t.Errorf("stream %d: %d messages, want %d", i, n, want)
					}
					if i > 0 {
						exhausted(t, stream.Err())
					} else if stream.Err() != nil {
						t.Error(stream.Err())
					}
					if h := stream.ResponseHeader(); len(h.Values("RateLimit")) != 1 || len(h.Values("RateLimit-Policy")) != 1 {
						t.Errorf("stream %d: headers %v", i, h)
					}
					if h := stream.ResponseTrailer(); h.Get("RateLimit") != "" {
						t.Errorf("stream %d: trailers %v", i, h)
					}
					_ = stream.Close()
				}
			})
		}
	}
}

// A handler may tell its client of a refused message, and go on.
func TestBidiStream(t *testing.T) {
	echo := func(_ context.Context, stream *connect.BidiStream[text, text]) error {
		for {
			_, err := stream.Receive()
			answer := "ok"
			if errors.Is(err, io.EOF) {
				return nil
			}
			if errors.Is(err, runtime.ErrLimited) {
				answer = "slow down"
			} else if err != nil {
				return err
			}
			if err := stream.Send(&text{Value: answer}); err != nil {
				return err
			}
		}
	}
	for _, w := range ways {
		if !w.http2 {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			stream := client(t, w, serve(t, &orders{echo: echo}, limits(t, 2, raterpc.OnReceive)), bidiStream).CallBidiStream(t.Context())
			for i, want := range []string{"ok", "ok", "slow down", "slow down"} {
				limittest.OK(t, stream.Send(&text{}))
				got, err := stream.Receive()
				if err != nil || got.GetValue() != want {
					t.Fatalf("message %d: %v, %v", i, got, err)
				}
			}
			if err := stream.CloseRequest(); err != nil {
				t.Error(err)
			}
			if _, err := stream.Receive(); !errors.Is(err, io.EOF) {
				t.Errorf("the stream ended with %v", err)
			}
			_ = stream.CloseResponse()
		})
	}
}
