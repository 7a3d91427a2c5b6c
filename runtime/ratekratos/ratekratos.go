// Package ratekratos tells clients of Kratos servers about rate limits.
//
//	http.NewServer(ratekratos.HTTP()...)
//	grpc.NewServer(ratekratos.GRPC()...)
//
// A call that a limit refuses ends with an error of Kratos whose code is 429 and whose
// reason is RATE_LIMIT_EXCEEDED, over HTTP as over gRPC. A call that no limiter could
// decide has the code 503 and the reason RATE_LIMITER_UNAVAILABLE. The time to come back
// is in Retry-After over HTTP and in a RetryInfo over gRPC. Do not give refusals the
// form of an error of Kratos in the program, by runtime.WithRefusalError say: such an error
// has a status of its own, which takes the place of the RetryInfo.
package ratekratos

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/transport"
	kgrpc "github.com/go-kratos/kratos/v2/transport/grpc"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/rategen/rategen/runtime/rategrpc"
	"github.com/rategen/rategen/runtime/ratehttp"
	"github.com/rategen/rategen/runtime/raterpc"
)

// HTTP returns the options of an HTTP server: [ratehttp.Middleware] as its filter, and an
// encoder of errors. A later option [khttp.Filter] or [khttp.ErrorEncoder] takes the
// place of one of them: give it [Filter] first, or wrap its encoder in [ErrorEncoder].
func HTTP(opts ...ratehttp.Option) []khttp.ServerOption {
	return []khttp.ServerOption{
		khttp.Filter(Filter(opts...)),
		khttp.ErrorEncoder(ErrorEncoder(khttp.DefaultErrorEncoder)),
	}
}

// Filter is [ratehttp.Middleware], whose refusals are errors of Kratos.
func Filter(opts ...ratehttp.Option) khttp.FilterFunc {
	body := ratehttp.WithAnswer(func(w http.ResponseWriter, r *http.Request, a ratehttp.Answer) {
		khttp.DefaultErrorEncoder(w, r, errorOf(r, a))
	})
	middleware := ratehttp.Middleware(append([]ratehttp.Option{body}, opts...)...)
	return func(next http.Handler) http.Handler {
		return middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), outerKey{}, r)))
		}))
	}
}

// outerKey is that of the request as the filter has it, before it has a route.
type outerKey struct{}

// ErrorEncoder returns an encoder that answers refusals, and leaves other errors to next.
// The log names the operation of a handler that hides a refusal or, without one, the route.
func ErrorEncoder(next khttp.EncodeErrorFunc) khttp.EncodeErrorFunc {
	return func(w http.ResponseWriter, r *http.Request, err error) {
		if ratehttp.Error(w, r, err) {
			return
		}
		if outer, ok := r.Context().Value(outerKey{}).(*http.Request); ok {
			outer.Pattern = routeOf(r)
		}
		next(w, r, err)
	}
}

// routeOf returns the operation of a request, "/shop.Orders/Show" say, which generated code
// sets, or else its route, "GET /orders/{id}".
func routeOf(r *http.Request) string {
	t, ok := transport.FromServerContext(r.Context())
	if !ok {
		return ""
	}
	route := t.Operation()
	if t, ok := t.(khttp.Transporter); ok && t.PathTemplate() == route {
		route = r.Method + " " + route
	}
	return route
}

// GRPC returns the options of a gRPC server, which has the interceptors of package
// rategrpc.
func GRPC(opts ...raterpc.Option) []kgrpc.ServerOption {
	return []kgrpc.ServerOption{kgrpc.Options(rategrpc.ServerOptions(opts...)...)}
}

// reasons has the reasons that gRPC clients get.
var reasons = raterpc.NewServer()

// errorOf returns an answer as an error of Kratos. Its metadata have the public names of
// the limits, and the seconds to wait.
func errorOf(r *http.Request, a ratehttp.Answer) error {
	e := errors.New(a.Status, errors.UnknownReason, a.Detail)
	_, call := reasons.Begin(r.Context(), "", nil)
	if refusal := call.Refusal(a.Err); refusal != nil {
		if info, ok := refusal.Details[0].(*errdetails.ErrorInfo); ok {
			e.Reason = info.Reason
		}
	}
	metadata := map[string]string{}
	if len(a.Policies) > 0 {
		metadata["policy"] = strings.Join(a.Policies, ",")
	}
	if a.RetryAfter > 0 {
		metadata["retry_after"] = strconv.FormatInt(a.RetryAfter, 10)
	}
	return e.WithMetadata(metadata)
}
