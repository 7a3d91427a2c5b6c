// Package frontapi serves HTTP in front of a gRPC backend that has limits.
package frontapi

import (
	"math"
	"net/http"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// backendRefused answers a request whose call a backend has refused, with the time that the
// backend says, and reports whether it has answered. A status without that time is no refusal:
// RESOURCE_EXHAUSTED stands for messages that are too large, too.
func backendRefused(w http.ResponseWriter, err error) bool {
	st := status.Convert(err)
	if st.Code() != codes.ResourceExhausted {
		return false
	}
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			seconds := math.Ceil(info.GetRetryDelay().AsDuration().Seconds())
			w.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
			http.Error(w, st.Message(), http.StatusTooManyRequests)
			return true
		}
	}
	return false
}

// serve answers with what a backend says.
func serve(call func(*http.Request) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := call(r)
		switch {
		case err == nil:
			_, _ = w.Write([]byte(text))
		case !backendRefused(w, err):
			http.Error(w, "the backend does not answer", http.StatusBadGateway)
		}
	}
}
