package rategrpc

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/rategen/rategen/runtime/raterpc"
	"github.com/rategen/rategen/runtime/wrapper"
)

// DialOptions has the calls of a client keep to the limits of its peers, see package
// rateclient. The pattern of a peer is the method's name, "/shop.v1.Orders/" or
// "api.example.com/shop.v1.Orders/Get": a call is like a POST of its method to the host
// that the client was dialed with, in any spelling of its target, and has the metadata that the
// caller gives it. A socket of Unix is the host localhost.
//
// A call is charged once, when it begins. What grpc-go retries by itself is not charged
// again, so let it retry no RESOURCE_EXHAUSTED. A call that is not made ends with that
// code, and its error wraps the one of [runtime.Limiter.Take].
//
// An answer that refuses a call, see [raterpc.ReadAnswer], holds back the calls of all replicas.
func DialOptions(t *rateclient.Transport) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(UnaryClientInterceptor(t)),
		grpc.WithChainStreamInterceptor(StreamClientInterceptor(t)),
	}
}

// BackendOptions has a server in front of a backend, such as one over HTTP or a grpc-gateway, answer
// a call that the backend refuses as it answers refusals of its own, with the backend's time: what is
// called under the context of a request of ratehttp, an adapter or an interceptor of this module is
// recorded there. RESOURCE_EXHAUSTED is a refusal of the client, and UNAVAILABLE one of this
// service, if they name a time, see [raterpc.ReadAnswer].
func BackendOptions() []grpc.DialOption {
	none := func(context.Context, *grpc.ClientConn, string) (*rateclient.Call, error) { return nil, nil }
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(unaryClient(none)), grpc.WithChainStreamInterceptor(streamClient(none))}
}

// UnaryClientInterceptor returns the interceptor of unary calls.
func UnaryClientInterceptor(t *rateclient.Transport) grpc.UnaryClientInterceptor {
	return unaryClient(admit(t))
}

// StreamClientInterceptor returns the interceptor of streams. Limits are charged when a
// stream begins.
func StreamClientInterceptor(t *rateclient.Transport) grpc.StreamClientInterceptor {
	return streamClient(admit(t))
}

// An admission has the limits of its peer admit a call, and returns nil if there are none.
type admission func(ctx context.Context, cc *grpc.ClientConn, method string) (*rateclient.Call, error)

func admit(t *rateclient.Transport) admission {
	return func(ctx context.Context, cc *grpc.ClientConn, method string) (*rateclient.Call, error) {
		call, err := t.Admit(request(ctx, cc, method))
		if err != nil {
			return nil, notMade(err)
		}
		return call, nil
	}
}

func unaryClient(admit admission) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		peer, err := admit(ctx, cc, method)
		if err != nil {
			return err
		}
		var header, trailer metadata.MD
		err = invoker(ctx, method, req, reply, cc, append(opts[:len(opts):len(opts)], grpc.Header(&header), grpc.Trailer(&trailer))...)
		call{method, peer}.answered(ctx, err, header, trailer)
		return err
	}
}

// A call is one that went out to a method.
type call struct {
	method string
	peer   *rateclient.Call // nil: it has no limits here
}

func streamClient(admit admission) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		peer, err := admit(ctx, cc, method)
		if err != nil {
			return nil, err
		}
		stream, err := streamer(ctx, desc, cc, method, opts...)
		if err != nil {
			return nil, err
		}
		return &clientStream{ClientStream: stream, call: call{method, peer}}, nil
	}
}

// A clientStream looks at how a stream begins and ends.
type clientStream struct {
	grpc.ClientStream
	call
	begun bool // RecvMsg is not called by two goroutines at once
}

func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if failed := err != nil && err != io.EOF; failed || !s.begun {
		s.begun = true
		header, _ := s.Header()
		if failed {
			s.answered(s.Context(), err, header, s.Trailer())
		} else {
			s.answered(s.Context(), nil, header, nil)
		}
	}
	return err
}

// request returns what stands for a call where limits are chosen.
func request(ctx context.Context, cc *grpc.ClientConn, method string) *http.Request {
	host := hostOf(cc.Target())
	header := http.Header{}
	if md, ok := metadata.FromOutgoingContext(ctx); ok {
		for name, values := range md {
			header[http.CanonicalHeaderKey(name)] = values
		}
	}
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{Scheme: "https", Host: host, Path: method}, Host: host, Header: header}
	return r.WithContext(ctx)
}

// schemes are those of targets that gRPC names, which need no "//", besides all that the program
// has registered.
var schemes = []string{"dns", "passthrough", "unix", "unix-abstract", "xds", "ipv4", "ipv6", "vsock"}

// hostOf returns the host that a client was dialed with, and the port if it has one: the endpoint
// of a target in all spellings, as in dns:host:port and xds://server/host. Of several addresses it
// is the first one, and of a socket of Unix its authority, localhost.
func hostOf(target string) string {
	for {
		scheme, rest, ok := strings.Cut(target, ":")
		scheme = strings.ToLower(scheme)
		if !ok || !slices.Contains(schemes, scheme) && resolver.Get(scheme) == nil && !strings.HasPrefix(rest, "//") {
			target, _, _ = strings.Cut(target, ",")
			return target
		}
		if strings.HasPrefix(scheme, "unix") || scheme == "vsock" {
			return "localhost"
		}
		if authority, is := strings.CutPrefix(rest, "//"); is {
			if _, rest, is = strings.Cut(authority, "/"); !is {
				rest = authority
			}
		}
		rest, _, _ = strings.Cut(rest, "?")
		target = strings.TrimPrefix(rest, "/")
	}
}

// answered has a call obey what its peer has answered, if the peer has: each answer has metadata, and
// a status without any was made here. The refusal of a peer without limits here is recorded.
func (c call) answered(ctx context.Context, err error, header, trailer metadata.MD) {
	s, ok := status.FromError(err)
	if !ok || len(header)+len(trailer) == 0 {
		return
	}
	var details []proto.Message
	for _, d := range s.Details() {
		if m, ok := d.(proto.Message); ok {
			details = append(details, m)
		}
	}
	fields := make(http.Header, len(header)+len(trailer))
	for name, values := range metadata.Join(header, trailer) {
		fields[http.CanonicalHeaderKey(name)] = values
	}
	a := raterpc.ReadAnswer(uint32(s.Code()), s.Message(), details, fields)
	if c.peer != nil {
		c.peer.Answered(ctx, a)
	} else if a.Refused {
		name := strings.ReplaceAll(strings.TrimPrefix(c.method, "/"), "/", ".")
		wrapper.RecordBackend(ctx, name, s.Code() == codes.Unavailable, a.HoldOff, err)
	}
}

// A notMadeError is the error of a call that was not made.
type notMadeError struct {
	error
	status *status.Status
}

func (e notMadeError) Unwrap() error              { return e.error }
func (e notMadeError) GRPCStatus() *status.Status { return e.status }

func notMade(err error) error {
	var limited *runtime.LimitedError
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	if errors.Is(err, runtime.ErrUnavailable) {
		return notMadeError{err, status.New(codes.Unavailable, err.Error())}
	}
	if !errors.As(err, &limited) {
		return notMadeError{err, status.New(codes.Internal, err.Error())}
	}
	s := status.New(codes.ResourceExhausted, err.Error())
	if limited.RetryAfter != runtime.Never {
		if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(limited.RetryAfter)}); err == nil {
			s = detailed
		}
	}
	return notMadeError{err, s}
}
