package rateclient_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// A reverse proxy answers a request that its Transport does not send with 502, and without
// Retry-After. With this ErrorHandler it is 503 with Retry-After, since no client is to blame.
func Example_reverseProxy() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }))
	defer api.Close()
	target, _ := url.Parse(api.URL)
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	defer limiter.Close()
	transport, err := rateclient.New(limiter, []rateclient.Peer{{
		Pattern: "127.0.0.1/",
		Limits:  []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "api", Window: time.Minute, Max: 1}, Margin: -1}},
	}})
	if err != nil {
		panic(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if !ratehttp.Error(w, r, err) {
				w.WriteHeader(http.StatusBadGateway)
			}
		},
	}
	for range 2 {
		w := httptest.NewRecorder()
		proxy.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Println(w.Code, w.Header()["Retry-After"])
	}
	// Output:
	// 200 []
	// 503 [60]
}
