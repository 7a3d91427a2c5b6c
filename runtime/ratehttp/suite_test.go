package ratehttp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime/ratehttp"
)

// A layer is what stands around the middleware and, unless outside is set, between it and the
// handler too.
type layer struct {
	wrap    func(*testing.T, http.Handler) http.Handler
	flushes bool // the answer is begun by a flush
	hijacks bool
	unbound bool // it says no length
	once    bool // it takes 103 for the answer
	holds   bool // what is written, so that the middleware inside does not see that an answer has begun
}

// plain is a layer that wraps the writer.
func plain(wrap func(http.ResponseWriter) http.ResponseWriter) func(*testing.T, http.Handler) http.Handler {
	return func(_ *testing.T, h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(wrap(w), r) })
	}
}

var layers = map[string]layer{
	"none":                 {wrap: plain(func(w http.ResponseWriter) http.ResponseWriter { return w }), flushes: true, hijacks: true},
	"writer":               {wrap: plain(func(w http.ResponseWriter) http.ResponseWriter { return bare{w} })},
	"writer with Unwrap":   {wrap: plain(func(w http.ResponseWriter) http.ResponseWriter { return over{bare{w}} }), flushes: true, hijacks: true},
	"http.MaxBytesHandler": {wrap: func(_ *testing.T, h http.Handler) http.Handler { return http.MaxBytesHandler(h, 1) }, flushes: true, hijacks: true},
	"http.StripPrefix":     {wrap: func(_ *testing.T, h http.Handler) http.Handler { return http.StripPrefix("/x", h) }, flushes: true, hijacks: true},
	"http.TimeoutHandler":  {wrap: func(_ *testing.T, h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Minute, "late") }, once: true, holds: true},
	"compression":          {wrap: func(_ *testing.T, h http.Handler) http.Handler { return compressed(h) }, holds: true, unbound: true},
	"a limit": {wrap: func(_ *testing.T, h http.Handler) http.Handler {
		limit := ratehttp.RequestLimit{Limiter: newLimiter(), Rule: hourly, Refund: func(int) bool { return true }}
		return ratehttp.Middleware(ratehttp.WithForcedRefusals())(limit.Wrap(h))
	}, flushes: true, hijacks: true},
	"httputil.ReverseProxy": {wrap: func(t *testing.T, h http.Handler) http.Handler {
		server := httptest.NewServer(ratehttp.Middleware(ratehttp.WithForcedRefusals())(h))
		t.Cleanup(server.Close)
		to, _ := url.Parse(server.URL)
		proxy := httputil.NewSingleHostReverseProxy(to)
		proxy.FlushInterval = -1
		return proxy
	}, flushes: true, hijacks: true},
}

// moments are what a handler does before it is refused: begun is what the client gets if the
// answer has begun by then.
var moments = map[string]struct {
	do    func(http.ResponseWriter)
	begun string // the answer has
	by    func(layer) bool
}{
	"before anything": {func(http.ResponseWriter) {}, "", nil},
	"after headers": {func(w http.ResponseWriter) {
		w.Header().Set("ETag", `"x"`)
		w.Header().Set("Content-Length", "5")
		w.Header().Set("X-Accel-Redirect", "/file")
	}, "", nil},
	"after 103":         {func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints) }, "", nil},
	"after a flush":     {func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }, "", func(l layer) bool { return l.flushes }},
	"after half a body": {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "half") }, "half", func(layer) bool { return true }},
	"after half a copy": {func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader("copy")) }, "copy", func(layer) bool { return true }},
	"after the header":  {func(w http.ResponseWriter) { w.WriteHeader(200) }, "", func(layer) bool { return true }},
	"after a hijack": {func(w http.ResponseWriter) {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmine")
			_ = conn.Close()
		}
	}, "mine", func(l layer) bool { return l.hijacks }},
}

// ends are what a handler does with the refusal: all lead to the same answer if none has begun.
var ends = map[string]func(http.ResponseWriter, *http.Request, error){
	"answers": answers,
	"forced":  hides,
	"goroutine": func(w http.ResponseWriter, r *http.Request, err error) {
		var done sync.WaitGroup
		done.Go(func() { answers(w, r, err) })
		done.Wait()
	},
	"goes on": func(w http.ResponseWriter, r *http.Request, err error) {
		answers(w, r, err)
		answers(w, r, err)
		_ = http.NewResponseController(w).Flush()
	},
	"writes on": func(w http.ResponseWriter, r *http.Request, err error) {
		answers(w, r, err)
		w.WriteHeader(200)
		_, _ = io.WriteString(w, "secret")
		_, _ = io.Copy(w, strings.NewReader("secret"))
	},
	"panic": func(w http.ResponseWriter, r *http.Request, err error) {
		defer func() { answers(w, r, recover().(error)) }()
		panic(err)
	},
}

// Whatever stands between handler and client, a refusal is the same at each moment: an answer of
// its own if none has begun, and nothing after that.
func TestLayers(t *testing.T) {
	log.SetOutput(io.Discard) // of layers that are told twice
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	for name, l := range layers {
		for _, inside := range []bool{false, true} {
			for _, proto := range []string{"HTTP/1", "HTTP/2", "h2c"} {
				t.Run(fmt.Sprintf("%s, inside %t, %s", name, inside, proto), func(t *testing.T) { checkLayer(t, l, inside, proto) })
			}
		}
	}
}

// checkLayer asks a server with a layer at each moment.
func checkLayer(t *testing.T, l layer, inside bool, proto string) {
	middleware := ratehttp.Middleware(ratehttp.WithForcedRefusals(), ratehttp.WithLegacyFields())
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refusing(t, newLimiter(), moments[r.Header.Get("Moment")].do, ends[r.Header.Get("End")]).ServeHTTP(w, r)
	})
	if inside {
		h = middleware(l.wrap(t, h))
	} else {
		h = l.wrap(t, middleware(h))
	}
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = proto == "HTTP/2"
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	client := server.Client
	if proto == "h2c" {
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		server.Config.Protocols = protocols
		server.Start()
		transport := &http.Transport{Protocols: protocols}
		defer transport.CloseIdleConnections()
		client = func() *http.Client { return &http.Client{Transport: transport} }
	} else {
		server.StartTLS()
	}
	defer server.Close()
	for moment, m := range moments {
		for end := range ends {
			begun := m.by != nil && m.by(l)
			switch {
			case proto != "HTTP/1" && moment == "after a hijack", l.once && moment == "after 103":
			case begun && l.holds && inside: // what the layer holds goes before the refusal
			case end == "writes on" && l.unbound && inside: // the layer appends it
			case begun && (end == "forced" || end == "writes on"): // the handler's own is appended
			default:
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/x/y", nil)
				r.Header.Set("Moment", moment)
				r.Header.Set("End", end)
				checkMoment(t, client(), r, begun, m.begun)
			}
		}
	}
}

func checkMoment(t *testing.T, client *http.Client, r *http.Request, begun bool, want string) {
	resp, err := client.Do(r)
	if err != nil {
		t.Error(r.Header, err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if begun {
		if err != nil || resp.StatusCode != 200 || string(body) != want || resp.Header.Get("Retry-After") != "" {
			t.Errorf("%v: %d %v %q %v, want %q", r.Header, resp.StatusCode, resp.Header, body, err, want)
		}
		return
	}
	doc := map[string]any{}
	if json.Unmarshal(body, &doc) != nil || err != nil || resp.StatusCode != 429 || doc["status"] != 429. || resp.Header.Get("Retry-After") != "3600" ||
		resp.Header.Get("ETag")+resp.Header.Get("X-Accel-Redirect") != "" || len(parse(t, resp.Header, "RateLimit")) == 0 {
		t.Errorf("%v: %d %v %q %v", r.Header, resp.StatusCode, resp.Header, body, err)
	}
}
