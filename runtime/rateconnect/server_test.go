package rateconnect_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rategen/rategen/internal/testkit/leaks"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateconnect"
	"github.com/rategen/rategen/runtime/raterpc"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// text is the message of all procedures.
type text = wrapperspb.StringValue

const (
	unary        = "/shop.v1.Orders/Get"
	serverStream = "/shop.v1.Orders/List"
	bidiStream   = "/shop.v1.Orders/Echo"
)

// An orders service answers by functions.
type orders struct {
	get  func(context.Context) error
	list func(context.Context, *connect.Request[text], *connect.ServerStream[text]) error
	echo func(context.Context, *connect.BidiStream[text, text]) error
}

// serving answers calls and streams by a function.
func serving(do func(context.Context) error) *orders {
	return &orders{get: do, list: func(ctx context.Context, _ *connect.Request[text], _ *connect.ServerStream[text]) error {
		return do(ctx)
	}}
}

// limitedBy is a handler that a rule limits inside of it, as a generated wrapper does.
func limitedBy(l *runtime.Limiter, r *runtime.Rule) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := l.Take(ctx, r.Limit(nil))
		return err
	}
}

// returns is a handler that ends with an error.
func returns(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// serve serves over HTTP/1.1 and unencrypted HTTP/2, and returns the address.
func serve(t *testing.T, o *orders, opts ...raterpc.Option) string {
	t.Helper()
	with := connect.WithInterceptors(rateconnect.NewInterceptor(opts...))
	mux := http.NewServeMux()
	mux.Handle(unary, connect.NewUnaryHandler(unary, func(ctx context.Context, _ *connect.Request[text]) (*connect.Response[text], error) {
		return connect.NewResponse(&text{Value: "hello"}), o.get(ctx)
	}, with))
	mux.Handle(serverStream, connect.NewServerStreamHandler(serverStream, o.list, with))
	mux.Handle(bidiStream, connect.NewBidiStreamHandler(bidiStream, o.echo, with))
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// A way is how a client talks to a server.
type way struct {
	name  string
	http2 bool
	opts  []connect.ClientOption
}

var ways = []way{
	{"Connect, HTTP/1.1", false, nil},
	{"Connect, HTTP/2", true, nil},
	{"Connect, JSON", true, []connect.ClientOption{connect.WithProtoJSON()}},
	{"gRPC, HTTP/2", true, []connect.ClientOption{connect.WithGRPC()}},
	{"gRPC-Web, HTTP/1.1", false, []connect.ClientOption{connect.WithGRPCWeb()}},
}

// client returns a client of a procedure. An interceptor in it does nothing.
func client(t *testing.T, w way, url, procedure string) *connect.Client[text, text] {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!w.http2)
	transport.Protocols.SetUnencryptedHTTP2(w.http2)
	t.Cleanup(transport.CloseIdleConnections)
	opts := append([]connect.ClientOption{connect.WithInterceptors(rateconnect.NewInterceptor(
		raterpc.WithLimits(limiter(t), raterpc.MethodLimit{Method: "*", Rule: rule(0)}),
	))}, w.opts...)
	return connect.NewClient[text, text](&http.Client{Transport: transport}, url+procedure, opts...)
}

// calls are a unary call, and a stream that is received to its end, with headers.
func calls(t *testing.T, w way, url string) map[string]func(http.Header) error {
	unaries, streams := client(t, w, url, unary), client(t, w, url, serverStream)
	request := func(header http.Header) *connect.Request[text] {
		r := connect.NewRequest(&text{})
		maps.Copy(r.Header(), header)
		return r
	}
	return map[string]func(http.Header) error{
		"unary": func(header http.Header) error {
			_, err := unaries.CallUnary(t.Context(), request(header))
			return err
		},
		"stream": func(header http.Header) error {
			stream, err := streams.CallServerStream(t.Context(), request(header))
			if err != nil {
				return err
			}
			for stream.Receive() {
			}
			_ = stream.Close()
			return stream.Err()
		},
	}
}

// limiter returns a limiter that counts in memory.
func limiter(t *testing.T, opts ...runtime.Option) *runtime.Limiter {
	l := runtime.New(runtime.NewMemoryStore(), append(opts, runtime.WithLogger(slog.New(slog.DiscardHandler)))...)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// rule returns a rule that a generated file could hold.
func rule(max int64) *runtime.Rule {
	return &runtime.Rule{Name: "shop.Orders.Get", Window: time.Hour, Max: max, Message: "too fast, have a cup of tea"}
}

// limits limits all procedures.
func limits(t *testing.T, max int64, on raterpc.Event) raterpc.Option {
	return raterpc.WithLimits(limiter(t), raterpc.MethodLimit{Method: "/shop.v1.Orders/*", Rule: rule(max), On: on})
}

// details returns the details of an error by their types' names.
func details(t *testing.T, err error) map[string]any {
	t.Helper()
	found := map[string]any{}
	if e := (*connect.Error)(nil); errors.As(err, &e) {
		for _, d := range e.Details() {
			value, err := d.Value()
			if err != nil {
				t.Error(err)
			}
			found[d.Type()] = value
		}
	}
	return found
}

// meta returns the metadata of an error.
func meta(err error) http.Header {
	if e := (*connect.Error)(nil); errors.As(err, &e) {
		return e.Meta()
	}
	return nil
}
