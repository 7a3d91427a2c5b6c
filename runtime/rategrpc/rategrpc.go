// Package rategrpc makes a gRPC server tell its clients about rate limits.
//
//	server := grpc.NewServer(rategrpc.ServerOptions()...)
//
// A call that a limit refuses ends with RESOURCE_EXHAUSTED and details: RetryInfo
// says when to come back, QuotaFailure which limits have no room, ErrorInfo a reason
// for programs. A call that no limiter could decide, while a rule fails closed, ends
// with UNAVAILABLE. It does not matter how deep inside the handler the limit is.
//
// Answers carry the fields ratelimit and ratelimit-policy: in the headers of a call
// that succeeds, and in the trailers of one that fails. A refusal is then a
// Trailers-Only answer, the only kind that gRPC clients retry, unless something else
// has set headers.
//
// A refused call whose handler ends it with UNKNOWN or INTERNAL ends with the refusal, and another status
// stays, as does an error of the context, see [raterpc.WithForcedRefusals]. Panics pass through. ratehttp.ClientIP knows the
// client of a call, see [raterpc.WithClients].
//
// [raterpc.WithPushback] tells clients when to retry, and [raterpc.WithLimits]
// applies limits to methods by their names.
package rategrpc

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/rategen/rategen/runtime/raterpc"
)

// ServerOptions returns both interceptors as options of a server. Interceptors that
// are added after them run inside of them.
func ServerOptions(opts ...raterpc.Option) []grpc.ServerOption {
	server := raterpc.NewServer(opts...)
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(unary(server)),
		grpc.ChainStreamInterceptor(stream(server)),
	}
}

// UnaryServerInterceptor returns the interceptor of unary calls, for a server that
// chains its interceptors itself.
func UnaryServerInterceptor(opts ...raterpc.Option) grpc.UnaryServerInterceptor {
	return unary(raterpc.NewServer(opts...))
}

// StreamServerInterceptor is as [UnaryServerInterceptor], for streams.
func StreamServerInterceptor(opts ...raterpc.Option) grpc.StreamServerInterceptor {
	return stream(raterpc.NewServer(opts...))
}

// CheckLimits returns an error that names the limits which no call of a server can be charged for,
// see [raterpc.CheckLimits]. Call it when all services are registered, with what
// [raterpc.WithLimits] was given.
func CheckLimits(server *grpc.Server, limits ...raterpc.MethodLimit) error {
	var methods []raterpc.Method
	for service, info := range server.GetServiceInfo() {
		for _, m := range info.Methods {
			methods = append(methods, raterpc.Method{Name: "/" + service + "/" + m.Name, Streams: m.IsServerStream})
		}
	}
	slices.SortFunc(methods, func(a, b raterpc.Method) int { return strings.Compare(a.Name, b.Name) })
	return raterpc.CheckLimits(methods, limits...)
}

func unary(server *raterpc.Server) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ctx, call := server.Begin(ctx, info.FullMethod, caller{ctx})
		defer call.End(ctx)
		if err := call.Charge(ctx, raterpc.OnOpen|raterpc.OnReceive, req); err != nil {
			return nil, answer(ctx, call, err, setTrailer(ctx))
		}
		resp, err := handler(ctx, req)
		if err != nil {
			return resp, answer(ctx, call, err, setTrailer(ctx))
		}
		call.Ended(ctx, uint32(codes.OK))
		if md := fields(call); md != nil {
			_ = grpc.SetHeader(ctx, md) // too late if the handler has sent the headers
		}
		return resp, nil
	}
}

func setTrailer(ctx context.Context) func(metadata.MD) {
	return func(md metadata.MD) { _ = grpc.SetTrailer(ctx, md) } // there is a stream in ctx
}

// answer returns the error to send for a handler's. What else to tell the client is
// given to trailer, which is nil if the client has the headers: the fields must not
// stand in trailers then, and nobody retries.
func answer(ctx context.Context, call *raterpc.Call, err error, trailer func(metadata.MD)) error {
	refusal := refusalOf(ctx, call, err)
	if trailer != nil {
		md := fields(call)
		if refusal != nil {
			if pushback := call.Pushback(ctx, refusal); pushback != "" {
				md = metadata.Join(md, metadata.Pairs(raterpc.FieldPushback, pushback))
			}
		}
		trailer(md)
	}
	if refusal == nil {
		return err
	}
	st := status.New(codes.Code(refusal.Code), refusal.Message)
	if refusal.Own {
		st = status.Convert(err)
		if slices.ContainsFunc(st.Details(), func(d any) bool { _, is := d.(*errdetails.RetryInfo); return is }) {
			return err
		}
	}
	details := make([]protoadapt.MessageV1, len(refusal.Details))
	for i, d := range refusal.Details {
		details[i] = protoadapt.MessageV1Of(d)
	}
	if detailed, err := st.WithDetails(details...); err == nil {
		st = detailed
	}
	return &refused{st, err}
}

// refusalOf returns the refusal that a handler's error is, or hides.
func refusalOf(ctx context.Context, call *raterpc.Call, err error) *raterpc.Refusal {
	if st, ok := status.FromError(err); ok {
		return call.Ended(ctx, uint32(st.Code()))
	}
	if refusal := call.Refusal(err); refusal != nil {
		return refusal
	}
	return call.Ended(ctx, uint32(status.FromContextError(err).Code()))
}

// A caller is the peer of a call.
type caller struct{ context.Context }

func (c caller) Addr() string {
	if p, ok := peer.FromContext(c); ok && p.Addr != nil {
		return p.Addr.String()
	}
	return ""
}

func (c caller) Header(name string) []string { return metadata.ValueFromIncomingContext(c, name) }

// A refused error has a status, and wraps the error that it was made of, for
// interceptors further out.
type refused struct {
	status *status.Status
	err    error
}

func (r *refused) Error() string              { return r.status.Err().Error() }
func (r *refused) GRPCStatus() *status.Status { return r.status }
func (r *refused) Unwrap() error              { return r.err }

// fields returns the fields of an answer as metadata, or nil.
func fields(call *raterpc.Call) metadata.MD {
	limit, policy := call.Fields()
	if policy == "" {
		return nil
	}
	md := metadata.Pairs(raterpc.FieldPolicy, policy)
	if limit != "" {
		md.Set(raterpc.FieldLimit, limit)
	}
	return md
}
