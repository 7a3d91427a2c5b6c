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
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// A layer is what stands around the middleware and, unless outside is set, between it and the
// handler too.
type layer struct {
	wrap    func(*testing.T, http.Handler, ...ratehttp.Option) http.Handler // the options are those of the middleware
	flushes bool                                                            // the answer is begun by a flush
	hijacks bool
	unbound bool // it says no length
	once    bool // it takes 103 for the answer
	holds   bool // what is written, so that the middleware inside does not see that an answer has begun
	fills   bool // it answers 200 for a handler that writes nothing
}

// plain is a layer that wraps the writer.
func plain(wrap func(http.ResponseWriter) http.ResponseWriter) func(*testing.T, http.Handler, ...ratehttp.Option) http.Handler {
	return around(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(wrap(w), r) })
	})
}

// around is a layer that knows nothing of limits.
func around(wrap func(http.Handler) http.Handler) func(*testing.T, http.Handler, ...ratehttp.Option) http.Handler {
	return func(_ *testing.T, h http.Handler, _ ...ratehttp.Option) http.Handler { return wrap(h) }
}

var layers = map[string]layer{
	"none":                 {wrap: plain(func(w http.ResponseWriter) http.ResponseWriter { return w }), flushes: true, hijacks: true},
	"writer":               {wrap: plain(func(w http.ResponseWriter) http.ResponseWriter { return bare{w} })},
	"writer with Unwrap":   {wrap: plain(func(w http.ResponseWriter) http.ResponseWriter { return over{bare{w}} }), flushes: true, hijacks: true},
	"http.MaxBytesHandler": {wrap: around(func(h http.Handler) http.Handler { return http.MaxBytesHandler(h, 1) }), flushes: true, hijacks: true},
	"http.StripPrefix":     {wrap: around(func(h http.Handler) http.Handler { return http.StripPrefix("/x", h) }), flushes: true, hijacks: true},
	"http.TimeoutHandler":  {wrap: around(func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Minute, "late") }), once: true, holds: true, fills: true},
	"compression":          {wrap: around(compressed), holds: true, unbound: true, fills: true},
	"a limit": {wrap: func(_ *testing.T, h http.Handler, opts ...ratehttp.Option) http.Handler {
		limit := ratehttp.RequestLimit{Limiter: newLimiter(), Rule: hourly, Refund: func(int) bool { return true }}
		return ratehttp.Middleware(opts...)(limit.Wrap(h))
	}, flushes: true, hijacks: true},
	"httputil.ReverseProxy": {wrap: func(t *testing.T, h http.Handler, opts ...ratehttp.Option) http.Handler {
		server := httptest.NewServer(ratehttp.Middleware(opts...)(h))
		t.Cleanup(server.Close)
		to, _ := url.Parse(server.URL)
		proxy := httputil.NewSingleHostReverseProxy(to)
		proxy.FlushInterval = -1
		return proxy
	}, flushes: true, hijacks: true, fills: true},
}

// moments are what a handler does before it is refused, in the words of [site.handle]: begun is what the client gets if the
// answer has begun by then.
var moments = map[string]struct {
	do, begun string
	by        func(layer) bool // the answer has
}{
	"before anything":   {"", "", nil},
	"after headers":     {`set ETag: "x"; set Content-Length: 5; set X-Accel-Redirect: /file`, "", nil},
	"after 103":         {"status 103", "", nil},
	"after a flush":     {"flush", "", func(l layer) bool { return l.flushes }},
	"after half a body": {"write half", "half", func(layer) bool { return true }},
	"after half a copy": {"copy copy", "copy", func(layer) bool { return true }},
	"after the header":  {"status 200", "", func(layer) bool { return true }},
	"after a hijack":    {"hijack", "mine", func(l layer) bool { return l.hijacks }},
}

// An end is what a handler does with the refusal.
type end struct {
	do    string
	own   int  // status that the client gets by default if no answer has begun; 0: that of the refusal
	meant bool // it is the program's own choice, which only WithForcedRefusals overrules
	hides bool // the handler's own is appended to what has begun
}

var ends = map[string]end{
	"answers":             {do: "answer"},
	"hides":               {do: "own 500", hides: true},
	"hides and writes on": {do: "own 500; status 200; write secret; copy secret; flush", hides: true},
	"goroutine":           {do: "beside"},
	"goes on":             {do: "answer on; answer on; flush"},
	"writes on":           {do: "answer on; status 200; write secret; copy secret", hides: true},
	"nothing":             {do: "", hides: true},
	"200":                 {do: "own 200", own: 200, hides: true},
	"404":                 {do: "own 404", own: 404, meant: true, hides: true},
	"429":                 {do: "own 429", own: 429, hides: true},
	"502":                 {do: "own 502", own: 502, meant: true, hides: true},
	"503":                 {do: "own 503", own: 503, hides: true},
}

// modes are what a middleware does about refusals that a handler hides.
var modes = map[string][]ratehttp.Option{
	"left": {ratehttp.WithHiddenRefusals()}, "default": nil, "forced": {ratehttp.WithForcedRefusals()},
}

// Whatever stands between handler and client, a refusal is the same at each moment: an answer of
// its own if none has begun, and nothing after that.
func TestLayers(t *testing.T) {
	log.SetOutput(io.Discard) // of layers that are told twice
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	for name, l := range layers {
		for _, inside := range []bool{false, true} {
			for _, proto := range []string{"HTTP/1", "HTTP/2"} {
				for mode, opts := range modes {
					t.Run(fmt.Sprintf("%s, inside %t, %s, %s", name, inside, proto, mode), func(t *testing.T) {
						if mode != "left" {
							checkLayer(t, l, inside, proto, opts)
						}
					})
				}
			}
		}
	}
}

// checkLayer asks a server with a layer at each moment.
func checkLayer(t *testing.T, l layer, inside bool, proto string, opts []ratehttp.Option) {
	middleware, forced := ratehttp.Middleware(append(opts, ratehttp.WithLegacyFields())...), len(opts) > 0
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &site{T: t, rules: map[string]*runtime.Rule{"another": another}, limiter: newLimiter()}
		p.handle(w, r, strings.Split(moments[r.Header.Get("Moment")].do+"; take another; take another; "+ends[r.Header.Get("End")].do, "; "))
	})
	if inside {
		h = middleware(l.wrap(t, h, opts...))
	} else {
		h = l.wrap(t, middleware(h), opts...)
	}
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(proto == "HTTP/1")
	protocols.SetUnencryptedHTTP2(proto == "HTTP/2")
	server.Config.Protocols = protocols
	server.Start()
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	defer server.Close()
	for moment, m := range moments {
		for name, end := range ends {
			begun := m.by != nil && m.by(l)
			own := end.own
			if end.meant && forced {
				own = 0
			}
			switch {
			case proto != "HTTP/1" && moment == "after a hijack", l.once && moment == "after 103":
			case begun && l.holds && inside: // what the layer holds goes before the refusal
			case name == "writes on" && l.unbound && inside: // the layer appends it
			case begun && end.hides:
			case name == "nothing" && l.fills && inside: // the layer makes it a success
			case own != 0 && moment == "after headers": // they are those of another answer
			default:
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/x/y", nil)
				r.Header.Set("Moment", moment)
				r.Header.Set("End", name)
				checkMoment(t, client, r, begun, m.begun, own)
			}
		}
	}
}

func checkMoment(t *testing.T, client *http.Client, r *http.Request, begun bool, want string, own int) {
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
	doc, wait := map[string]any{}, ""
	if own == 0 || own == 429 || own == 503 {
		wait = "3600"
	}
	whole := json.Unmarshal(body, &doc) == nil && resp.StatusCode == 429 && doc["status"] == 429.
	if own != 0 {
		whole = resp.StatusCode == own && string(body) == "own\n"
	}
	if !whole || err != nil || resp.Header.Get("Retry-After") != wait ||
		resp.Header.Get("ETag")+resp.Header.Get("X-Accel-Redirect") != "" || len(parse(t, resp.Header, "RateLimit")) == 0 || len(resp.Trailer) > 0 {
		t.Errorf("%v: %d %v %q %v", r.Header, resp.StatusCode, resp.Header, body, err)
	}
}
