package rateconnect

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/rategen/rategen/runtime/raterpc"
)

// NewClientInterceptor returns an interceptor that has the calls of a client keep to the
// limits of its peers, see package rateclient. The pattern of a peer is the procedure,
// "/shop.v1.Orders/" or "api.example.com/shop.v1.Orders/Get": a call is like a POST of its
// procedure, with its headers. It does nothing in a server.
//
// A call that is not made ends with [connect.CodeResourceExhausted], and its error wraps
// the one of [runtime.Limiter.Take]. An answer that refuses a call, see [raterpc.ReadAnswer],
// holds back the calls of all replicas. Limits are charged when a stream begins.
func NewClientInterceptor(t *rateclient.Transport) connect.Interceptor { return clientInterceptor{t} }

type clientInterceptor struct{ transport *rateclient.Transport }

// WrapUnary implements [connect.Interceptor].
func (i clientInterceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if !req.Spec().IsClient {
			return next(ctx, req)
		}
		call, err := i.transport.Admit(request(ctx, req.Peer(), req.Spec(), req.Header()))
		if err != nil {
			return nil, notMade(err)
		}
		resp, err := next(ctx, req)
		var header http.Header
		if err == nil {
			header = resp.Header()
		}
		answered(ctx, call, err, header)
		return resp, err
	}
}

// WrapStreamingHandler implements [connect.Interceptor].
func (clientInterceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// WrapStreamingClient implements [connect.Interceptor].
func (i clientInterceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		return &clientConn{StreamingClientConn: next(ctx, spec), ctx: ctx, transport: i.transport}
	}
}

// A clientConn is a stream that begins when it is admitted.
type clientConn struct {
	connect.StreamingClientConn
	ctx       context.Context
	transport *rateclient.Transport

	once     sync.Once
	call     *rateclient.Call
	err      error // why it was not admitted
	answered atomic.Bool
}

// admit has the stream admitted before it sends anything: its headers are known then.
func (c *clientConn) admit() error {
	c.once.Do(func() {
		call, err := c.transport.Admit(request(c.ctx, c.Peer(), c.Spec(), c.RequestHeader()))
		c.call = call
		if err != nil {
			c.err = notMade(err)
		}
	})
	return c.err
}

func (c *clientConn) Send(msg any) error {
	if err := c.admit(); err != nil {
		return err
	}
	return c.StreamingClientConn.Send(msg)
}

func (c *clientConn) CloseRequest() error {
	if err := c.admit(); err != nil {
		return err
	}
	return c.StreamingClientConn.CloseRequest()
}

func (c *clientConn) Receive(msg any) error {
	if err := c.admit(); err != nil {
		return err
	}
	err := c.StreamingClientConn.Receive(msg)
	if failed := err != nil && !errors.Is(err, io.EOF); !c.answered.Swap(true) || failed {
		if failed {
			answered(c.ctx, c.call, err, nil)
		} else {
			answered(c.ctx, c.call, nil, c.ResponseHeader())
		}
	}
	return err
}

func (c *clientConn) CloseResponse() error {
	if c.admit() != nil {
		return nil // there is none to wait for
	}
	return c.StreamingClientConn.CloseResponse()
}

// request returns what stands for a call where limits are chosen.
func request(ctx context.Context, peer connect.Peer, spec connect.Spec, header http.Header) *http.Request {
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{Scheme: "https", Host: peer.Addr, Path: spec.Procedure}, Host: peer.Addr, Header: header}
	return r.WithContext(ctx)
}

// answered has a call obey what its peer has answered, if the peer has.
func answered(ctx context.Context, call *rateclient.Call, err error, header http.Header) {
	if err == nil {
		call.Answered(ctx, raterpc.ReadAnswer(0, "", nil, header))
		return
	}
	var coded *connect.Error
	if !errors.As(err, &coded) || !connect.IsWireError(err) {
		return
	}
	var details []proto.Message
	for _, d := range coded.Details() {
		if m, err := d.Value(); err == nil {
			details = append(details, m)
		}
	}
	call.Answered(ctx, raterpc.ReadAnswer(uint32(coded.Code()), coded.Message(), details, coded.Meta()))
}

// notMade returns the error of a call that was not made.
func notMade(err error) error {
	var limited *runtime.LimitedError
	if errors.Is(err, context.Canceled) {
		return connect.NewError(connect.CodeCanceled, err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	}
	if errors.Is(err, runtime.ErrUnavailable) {
		return connect.NewError(connect.CodeUnavailable, err)
	}
	if !errors.As(err, &limited) {
		return connect.NewError(connect.CodeInternal, err)
	}
	coded := connect.NewError(connect.CodeResourceExhausted, err)
	if limited.RetryAfter != runtime.Never {
		if d, err := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(limited.RetryAfter)}); err == nil {
			coded.AddDetail(d)
		}
	}
	return coded
}
