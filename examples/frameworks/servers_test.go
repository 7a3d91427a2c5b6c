package frameworks

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/rategen/rategen/examples/frameworks/chiapi"
	"github.com/rategen/rategen/examples/frameworks/gatewayapi"
	"github.com/rategen/rategen/examples/frameworks/gokitapi"
	"github.com/rategen/rategen/examples/frameworks/humaapi"
	"github.com/rategen/rategen/examples/frameworks/nethttp"
	"github.com/rategen/rategen/examples/frameworks/oapi"
	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/examples/frameworks/sqlcdb"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// A server is a program on a framework, in which one of two things may be had once an hour.
type server struct {
	serve      func(*testing.T, *runtime.Limiter) http.Handler
	path       string // of a thing by its id; /orders/ if it is empty
	body       string // what the answer has before the id
	refusal    string // what the answer to a refusal has
	lost       string // another path, whose answer no limit changes
	lostStatus int
}

func handler(of func(*runtime.Limiter) http.Handler) func(*testing.T, *runtime.Limiter) http.Handler {
	return func(_ *testing.T, limiter *runtime.Limiter) http.Handler { return of(limiter) }
}

// withLimit is for servers without a directive.
func withLimit(of func(ratehttp.RequestLimit) http.Handler) func(*testing.T, *runtime.Limiter) http.Handler {
	return func(_ *testing.T, limiter *runtime.Limiter) http.Handler {
		return of(ratehttp.RequestLimit{
			Limiter: limiter, Rule: &runtime.Rule{Name: "orders", Window: time.Hour, Max: 1},
			Key: func(r *http.Request) string { return r.URL.Path },
		})
	}
}

var servers = map[string]server{
	"net/http":                     {serve: handler(nethttp.Handler)},
	"net/http without a directive": {serve: withLimit(nethttp.WithLimit)},
	"chi":                          {serve: handler(chiapi.Handler)},
	"chi without a directive":      {serve: withLimit(chiapi.WithLimit)},
	"go-kit":                       {serve: handler(gokitapi.Handler)},
	"huma":                         {serve: handler(humaapi.Handler), body: `"id":"`, refusal: `"title":"Quota Exceeded","status":429`},
	"oapi-codegen":                 {serve: handler(oapi.NewHandler)},
	"oapi-codegen, strict":         {serve: handler(oapi.StrictHandler)},
	"sqlc":                         {serve: sqlc},
	"grpc-gateway":                 {serve: gateway, path: "/api/v1/namespaces/", body: "{", lost: "/api/v1/namespaces", lostStatus: 501},
}

// sqlc has a database that expects one query for each order.
func sqlc(t *testing.T, limiter *runtime.Limiter) http.Handler {
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for id, item := range []string{"order 1", "order 2"} {
		mock.ExpectQuery("SELECT id, item FROM orders").WithArgs(id + 1).
			WillReturnRows(sqlmock.NewRows([]string{"id", "item"}).AddRow(id+1, item))
	}
	return sqlcdb.Handler(sqlcdb.New(db), limiter)
}

func gateway(t *testing.T, limiter *runtime.Limiter) http.Handler {
	h, err := gatewayapi.Handler(limiter)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// The second request for a thing is refused, and one for another is not. The id was found in the
// path, and is in the answer. The fields of an answer show that the limiter had the context of the
// request. Where Redis is gone clients are told so, and nothing of the network behind the server.
func TestServers(t *testing.T) {
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			h, path := s.serve(t, refused.Limiter(t)), cmp.Or(s.path, "/orders/")
			for i, want := range []struct {
				id     string
				status int
			}{{"1", 200}, {"1", 429}, {"2", 200}} {
				w := get(h, path+want.id)
				has, retry := cmp.Or(s.body, "order ")+want.id, w.Header().Get("Retry-After")
				if s.body == "{" {
					has = s.body
				}
				if want.status == 429 {
					has = s.refusal
					if s.refusal == "" {
						has = "#quota-exceeded"
					}
				}
				seconds, _ := strconv.Atoi(retry)
				if w.Code != want.status || !strings.Contains(w.Body.String(), has) || w.Header().Get("RateLimit") == "" ||
					(want.status == 429) != (seconds >= 1 && seconds <= 3600) {
					t.Errorf("request %d: %d %v %s; want %d with %s", i, w.Code, w.Header(), w.Body, want.status, has)
				}
			}
			if s.lost != "" {
				if w := get(h, s.lost); w.Code != s.lostStatus {
					t.Errorf("%s: %d %s, want %d", s.lost, w.Code, w.Body, s.lostStatus)
				}
			}
			w := get(s.serve(t, refused.Down(t)), path+"1")
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("without Redis: %d %s, want 503", w.Code, w.Body)
			}
			refused.NoAddress(t, w.Body.String())
		})
	}
}

// Of methods without a context only go-kit's encoder says when to come back.
func TestWithoutMiddleware(t *testing.T) {
	for name, c := range map[string]struct {
		handler    http.Handler
		status     int
		retryAfter string
	}{
		"go-kit":                           {gokitapi.Bare(refused.Limiter(t)), 429, ""},
		"go-kit, with the encoder of docs": {gokitapi.Encoding(refused.Limiter(t)), 429, "3600"},
	} {
		if w := get(c.handler, "/orders/1"); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		w := get(c.handler, "/orders/1")
		if w.Code != c.status || w.Header().Get("RateLimit") != "" || w.Header().Get("Retry-After") != c.retryAfter {
			t.Errorf("%s: %d %v, want %d, Retry-After %q and no RateLimit", name, w.Code, w.Header(), c.status, c.retryAfter)
		}
	}
}
