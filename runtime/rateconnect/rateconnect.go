// Package rateconnect makes a Connect server tell its clients about rate limits, in
// the Connect, gRPC and gRPC-Web protocols.
//
//	path, handler := shopv1connect.NewOrdersHandler(orders,
//		connect.WithInterceptors(rateconnect.NewInterceptor()))
//
// A call that a limit refuses ends with [connect.CodeResourceExhausted], which is
// HTTP status 429 in the Connect protocol, with the metadata Retry-After and details:
// RetryInfo says when to come back, QuotaFailure which limits have no room, ErrorInfo
// a reason for programs. A call that no limiter could decide, while a rule fails
// closed, ends with [connect.CodeUnavailable]. It does not matter how deep inside the
// handler the limit is.
//
// Answers carry the header fields RateLimit and RateLimit-Policy, unless a stream was
// refused after its headers were sent.
//
// A refused call whose handler ends it with [connect.CodeUnknown] or [connect.CodeInternal] ends with the
// refusal, and another error stays, as does one of the context, see [raterpc.WithForcedRefusals]. Panics pass through. ratehttp.ClientIP knows the
// client of a call, see [raterpc.WithClients]. In a handler that has
// ratehttp.Middleware around it, it is the one that the middleware has found.
//
// [raterpc.WithLimits] applies limits to methods by their names. A retry policy of a
// gRPC client has no effect on a Connect server: it needs an answer that consists of
// trailers only, and net/http sends headers apart. So [raterpc.WithPushback] has no
// effect either. Clients read RetryInfo.
package rateconnect

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/raterpc"
)

// NewInterceptor returns an interceptor for the handlers of a server. It does nothing
// in a client.
func NewInterceptor(opts ...raterpc.Option) connect.Interceptor {
	return &interceptor{raterpc.NewServer(opts...)}
}

type interceptor struct{ server *raterpc.Server }

// WrapUnary implements [connect.Interceptor].
func (i *interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if req.Spec().IsClient {
			return next(ctx, req)
		}
		ctx, call := i.server.Begin(ctx, req.Spec().Procedure, caller{req})
		defer call.End(ctx)
		var resp connect.AnyResponse
		err := call.Charge(ctx, raterpc.OnOpen|raterpc.OnReceive, req.Any())
		if err == nil {
			resp, err = next(ctx, req)
		}
		if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
			setFields(info.ResponseHeader(), call)
		}
		return resp, answer(ctx, call, err)
	}
}

// WrapStreamingClient implements [connect.Interceptor].
func (i *interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements [connect.Interceptor].
func (i *interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		ctx, call := i.server.Begin(ctx, conn.Spec().Procedure, streamCaller{conn})
		defer call.End(ctx)
		s := &stream{
			StreamingHandlerConn: conn, ctx: ctx, call: call,
			receives: call.Charges(raterpc.OnReceive), sends: call.Charges(raterpc.OnSend),
		}
		err := call.Charge(ctx, raterpc.OnOpen, nil)
		if err == nil {
			err = next(ctx, s)
		}
		s.setFields() // nothing was sent
		return answer(ctx, call, err)
	}
}

// A stream charges the messages of a stream, and adds the fields to its headers.
type stream struct {
	connect.StreamingHandlerConn
	ctx             context.Context
	call            *raterpc.Call
	receives, sends bool        // limits charge messages
	sent            atomic.Bool // the headers
}

// setFields adds the fields to the headers, unless these were sent.
func (s *stream) setFields() {
	if !s.sent.Swap(true) {
		setFields(s.ResponseHeader(), s.call)
	}
}

func (s *stream) Send(msg any) error {
	if s.sends {
		if err := s.call.Charge(s.ctx, raterpc.OnSend, msg); err != nil {
			return err
		}
	}
	s.setFields()
	return s.StreamingHandlerConn.Send(msg)
}

func (s *stream) Receive(msg any) error {
	if err := s.StreamingHandlerConn.Receive(msg); err != nil || !s.receives {
		return err
	}
	return s.call.Charge(s.ctx, raterpc.OnReceive, msg)
}

// setFields adds the fields of a call to the headers of its answer.
func setFields(header http.Header, call *raterpc.Call) {
	limit, policy := call.Fields()
	if limit != "" {
		header.Set(raterpc.FieldLimit, limit)
	}
	if policy != "" {
		header.Set(raterpc.FieldPolicy, policy)
	}
}

// answer returns the error to send for a handler's.
func answer(ctx context.Context, call *raterpc.Call, err error) error {
	refusal := refusalOf(ctx, call, err)
	if refusal == nil {
		return err
	}
	refused := connect.NewError(connect.Code(refusal.Code), &cause{refusal.Message, err})
	if refusal.Own {
		if refused = copyOf(err); slices.ContainsFunc(refused.Details(), func(d *connect.ErrorDetail) bool { return d.Type() == retryInfo }) {
			return err
		}
	}
	for _, d := range refusal.Details {
		if detail, err := connect.NewErrorDetail(d); err == nil {
			refused.AddDetail(detail)
		}
	}
	if refusal.RetryAfter > 0 && refusal.RetryAfter != runtime.Never && refused.Meta().Get("Retry-After") == "" {
		seconds := (refusal.RetryAfter-1)/time.Second + 1
		refused.Meta().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	return refused
}

// retryInfo is the name of a google.rpc.RetryInfo.
const retryInfo = "google.rpc.RetryInfo"

// copyOf returns an error of the program's, which may be shared by many calls, for details of this one.
func copyOf(err error) *connect.Error {
	var coded *connect.Error
	if !errors.As(err, &coded) || coded == nil {
		return connect.NewError(connect.CodeUnknown, err)
	}
	own := connect.NewError(coded.Code(), coded.Unwrap())
	for _, d := range coded.Details() {
		own.AddDetail(d)
	}
	maps.Copy(own.Meta(), coded.Meta())
	return own
}

// refusalOf returns the refusal that a handler's error is, hides, or has told in part.
func refusalOf(ctx context.Context, call *raterpc.Call, err error) *raterpc.Refusal {
	coded := (*connect.Error)(nil)
	if err == nil {
		return call.Ended(ctx, 0)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	if errors.As(err, &coded) && coded != nil {
		return call.Ended(ctx, uint32(coded.Code()))
	}
	if refusal := call.Refusal(err); refusal != nil {
		return refusal
	}
	if errors.Is(err, context.Canceled) {
		return call.Ended(ctx, uint32(connect.CodeCanceled))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return call.Ended(ctx, uint32(connect.CodeDeadlineExceeded))
	}
	return call.Ended(ctx, uint32(connect.CodeUnknown))
}

// A caller is the peer of a unary call, and a streamCaller that of a stream.
type (
	caller       struct{ connect.AnyRequest }
	streamCaller struct{ connect.StreamingHandlerConn }
)

func (c caller) Addr() string                      { return c.Peer().Addr }
func (c caller) Header(name string) []string       { return c.AnyRequest.Header().Values(name) }
func (c streamCaller) Addr() string                { return c.Peer().Addr }
func (c streamCaller) Header(name string) []string { return c.RequestHeader().Values(name) }

// A cause is an error in words for clients. It wraps the error that it was made of,
// for interceptors further out.
type cause struct {
	message string
	err     error
}

func (c *cause) Error() string { return c.message }
func (c *cause) Unwrap() error { return c.err }
