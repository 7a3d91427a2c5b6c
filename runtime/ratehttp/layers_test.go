package ratehttp_test

import (
	"bytes"
	"context"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// A handler whose time is over goes on beside the middleware, which answers for it.
func TestMiddlewareAroundTimeout(t *testing.T) {
	for _, opts := range [][]ratehttp.Option{nil, {ratehttp.WithForcedRefusals(), ratehttp.WithLegacyFields(), ratehttp.WithCORS()}} {
		limiter, handlers := newLimiter(), sync.WaitGroup{}
		h := ratehttp.Middleware(opts...)(http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer handlers.Done()
			_, err := limiter.Take(r.Context(), nobody.Limit(nil))
			if r.URL.Path == "/over" {
				<-r.Context().Done()
			}
			if !ratehttp.Error(w, r, err) {
				t.Error(err)
			}
		}), 10*time.Millisecond, "late"))
		for _, path := range []string{"/", "/over"} {
			for range 30 {
				handlers.Add(1)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				if w.Code != 429 && w.Code != 503 || path == "/over" && w.Code != 503 {
					t.Errorf("%s: %d", path, w.Code)
				}
			}
		}
		handlers.Wait()
	}
}

// What a handler finds out about its request is known to the server, which removes the files
// of a form, and to layers outside of the middleware.
func TestRequestOfOuterLayers(t *testing.T) {
	limit := ratehttp.RequestLimit{Limiter: newLimiter(), Rule: hourly}
	for name, around := range map[string]func(http.Handler) http.Handler{
		"none":       func(h http.Handler) http.Handler { return h },
		"middleware": ratehttp.Middleware(), "limit": limit.Wrap,
		"both": func(h http.Handler) http.Handler { return ratehttp.Middleware()(limit.Wrap(h)) },
	} {
		for _, panics := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, panics %t", name, panics), func(t *testing.T) {
				files := t.TempDir()
				t.Setenv("TMPDIR", files)
				mux := http.NewServeMux()
				mux.HandleFunc("POST /u/{user}/{$}", func(http.ResponseWriter, *http.Request) { t.Error("the wrong route") })
				mux.HandleFunc("POST /u/{user}/f/{path...}", func(w http.ResponseWriter, r *http.Request) {
					if err := r.ParseMultipartForm(1); err != nil {
						t.Error(err)
					}
					if made, err := os.ReadDir(files); err != nil || len(made) != 1 {
						t.Errorf("%v %v", made, err)
					}
					if panics {
						panic("a handler")
					}
				})
				inner := around(mux)
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer func() {
						_ = recover()
						got := []string{r.Pattern, r.PathValue("user"), r.PathValue("path"), r.Form.Get("a"), r.PostForm.Get("a")}
						want := []string{"POST /u/{user}/f/{path...}", "ann", "x/y", "b", "b"}
						if diff := cmp.Diff(want, got); diff != "" || r.MultipartForm == nil {
							t.Errorf("%v (-want +got):\n%s", r.MultipartForm, diff)
						}
					}()
					inner.ServeHTTP(w, r)
				}))
				var body bytes.Buffer
				form := multipart.NewWriter(&body)
				_ = form.WriteField("a", "b")
				file, _ := form.CreateFormFile("file", "x.bin")
				_, _ = file.Write(make([]byte, 1<<20))
				_ = form.Close()
				resp, err := http.Post(server.URL+"/u/ann/f/x/y", form.FormDataContentType(), &body)
				limittest.OK(t, err)
				_ = resp.Body.Close()
				server.Close() // all requests have ended
				if left, err := os.ReadDir(files); err != nil || len(left) > 0 {
					t.Errorf("files are left: %v %v", left, err)
				}
			})
		}
	}
}

// A connection that is hijacked past layers is no answer of ours, and hides nothing.
func TestHijackPastLayers(t *testing.T) {
	limiter := newLimiter(runtime.WithObserver(&observe.Observer{Hidden: func(context.Context, observe.HiddenEvent) { t.Error("hidden") }}))
	refund := make(chan int, 1)
	limit := ratehttp.RequestLimit{Limiter: limiter, Rule: hourly, Refund: func(status int) bool { refund <- status; return false }}
	h := ratehttp.Middleware(ratehttp.WithForcedRefusals())(limit.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &site{T: t, rules: map[string]*runtime.Rule{"another": another}, limiter: limiter}
		p.handle(w, r, []string{"take another", "take another", "hijack past", "bare", "deny"}) // which is too late
	})))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(over{bare{w}}, r) }))
	resp, err := http.Get(server.URL)
	limittest.OK(t, err)
	limittest.Equal(t, "body", bodyOf(t, resp), "mine")
	server.Close()
	limittest.Equal(t, "Refund got", <-refund, http.StatusSwitchingProtocols)
}
