package frontapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// refusal is the status of a call, with what else it says.
func refusal(t *testing.T, code codes.Code, details ...protoadapt.MessageV1) error {
	t.Helper()
	st, err := status.New(code, "too many orders").WithDetails(details...)
	if err != nil {
		t.Fatal(err)
	}
	return st.Err()
}

func TestBackendRefused(t *testing.T) {
	in := func(d time.Duration) *errdetails.RetryInfo {
		return &errdetails.RetryInfo{RetryDelay: durationpb.New(d)}
	}
	for _, c := range []struct {
		name       string
		err        error
		code       int
		retryAfter string
	}{
		{"admitted", nil, http.StatusOK, ""},
		{"refused", refusal(t, codes.ResourceExhausted, in(time.Minute)), http.StatusTooManyRequests, "60"},
		{"refused for part of a second", refusal(t, codes.ResourceExhausted, in(1200*time.Millisecond)), http.StatusTooManyRequests, "2"},
		{"beside other details", refusal(t, codes.ResourceExhausted, &errdetails.ErrorInfo{}, in(time.Second)), http.StatusTooManyRequests, "1"},
		{"too large", refusal(t, codes.ResourceExhausted), http.StatusBadGateway, ""},
		{"away", refusal(t, codes.Unavailable, in(time.Second)), http.StatusBadGateway, ""},
		{"not a status", errors.New("no"), http.StatusBadGateway, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			serve(func(*http.Request) (string, error) { return "ok", c.err })(w, httptest.NewRequest("GET", "/", nil))
			if w.Code != c.code || w.Header().Get("Retry-After") != c.retryAfter {
				t.Errorf("%d, Retry-After %q; want %d, %q", w.Code, w.Header().Get("Retry-After"), c.code, c.retryAfter)
			}
		})
	}
}
