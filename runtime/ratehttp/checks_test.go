package ratehttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// A lineHandler panics with every line.
type lineHandler struct{ slog.Handler }

func (lineHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (lineHandler) Handle(context.Context, slog.Record) error { panic("handle") }

// Each mistake is reported once, with a code and what helps, and with nothing that a
// client has sent.
func TestChecks(t *testing.T) {
	const mark = "hxqzj"
	client := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ratehttp.ClientIP(r.Context()) })
	twice := &runtime.Rule{Name: "x", Window: time.Minute, Max: 100}
	limit := ratehttp.RequestLimit{Limiter: newLimiter(), Rule: twice, Key: func(*http.Request) string { return "all" }}
	empty, peer := limit, limit
	peer.Key = func(r *http.Request) string { return r.RemoteAddr }
	empty.Key = func(r *http.Request) string { return "" }
	forwarded := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, mark) }
	}
	by := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.RemoteAddr, r.Header = proxy, http.Header{name: {value}} }
	}
	for _, c := range []struct {
		code    string
		handler http.Handler
		opts    []ratehttp.Option
		change  func(*http.Request)
	}{
		{"untrusted_proxy", client, nil, forwarded("X-Forwarded-For")},
		{"untrusted_proxy", client, nil, forwarded("Forwarded")},
		{"untrusted_proxy", client, nil, forwarded("X-Real-IP")},
		{"", client, []ratehttp.Option{proxies(ratehttp.XForwardedFor)}, forwarded("X-Forwarded-For")},
		{"no_address", client, []ratehttp.Option{proxies(ratehttp.XForwardedFor)}, by("X-Forwarded-For", "203.0.113.7, "+mark)},
		{"no_address", client, []ratehttp.Option{proxies(ratehttp.Forwarded)}, by("Forwarded", "by="+mark)},
		{"", client, []ratehttp.Option{proxies(ratehttp.XForwardedFor)}, by("X-Forwarded-For", mark+", 203.0.113.7")},
		{"", client, nil, forwarded("X-Other")},
		{"", http.NotFoundHandler(), nil, forwarded("X-Forwarded-For")}, // nobody asks for the client
		{"unknown_peer", client, nil, from("@", "")},
		{"", client, []ratehttp.Option{ratehttp.WithTrustedUnixSocket()}, from("@", "")},
		{"empty_key", empty.Wrap(client), nil, from("203.0.113.7:1", "")},
		{"address_key", peer.Wrap(client), nil, from("203.0.113.7:1", "")},
		{"", peer.Wrap(client), nil, from("203.0.113.7", "")}, // a server that names no port, as for functions in a cloud
		{"limited_twice", limit.Wrap(limit.Wrap(client)), nil, from("203.0.113.7:1", "")},
		{"", limit.Wrap(ratehttp.RequestLimit{Limiter: newLimiter(), Rule: hourly}.Wrap(client)), nil, from("203.0.113.7:1", "")},
		{"", limit.Wrap(ratehttp.RequestLimit{Limiter: newLimiter(), Rule: twice}.Wrap(client)), nil, from("203.0.113.7:1", "")}, // another key
		{"partition_key_panic", limit.Wrap(client), []ratehttp.Option{
			ratehttp.WithPartitionKey([]byte("s"), func(*http.Request, string) string { panic(mark) })}, from("203.0.113.7:1", "")},
		{"same_policy_name", taking(newLimiter(), (&runtime.Rule{Name: "a.S.Get", Window: time.Hour, Max: 100}).Limit(nil),
			(&runtime.Rule{Name: "b.S.Get", Window: time.Hour, Max: 100}).Limit(nil)), nil, from("203.0.113.7:1", "")},
	} {
		var log bytes.Buffer
		h := ratehttp.Middleware(append(c.opts, ratehttp.WithLogger(slog.New(slog.NewJSONHandler(&log, nil))))...)(c.handler)
		for range 3 {
			answerOf(h, c.change)
		}
		checkLog(t, log.String(), c.code, mark)
		h = ratehttp.Middleware(append(c.opts, ratehttp.WithLogger(slog.New(lineHandler{})))...)(c.handler)
		answerOf(h, c.change) // a broken log ends no request
	}
	sent := func(peer string) func(*http.Request) {
		return func(r *http.Request) {
			r.RemoteAddr = peer
			r.Header.Set(ratehttp.XForwardedFor, mark)
		}
	}
	// Of a balancer whose network nobody has named, and of clients who write the header themselves.
	for _, balanced := range []bool{false, true} {
		var log bytes.Buffer
		h := ratehttp.Middleware(proxies(ratehttp.XForwardedFor), ratehttp.WithLogger(slog.New(slog.NewJSONHandler(&log, nil))))(client)
		if balanced {
			answerOf(h, by("X-Forwarded-For", "203.0.113.7"))
		}
		for range 99 {
			answerOf(h, sent("203.0.113.7:1"))
		}
		checkLog(t, log.String(), "", mark)
		for range 3 {
			answerOf(h, sent("203.0.113.7:1"))
		}
		checkLog(t, log.String(), map[bool]string{false: "untrusted_peer"}[balanced], mark)
	}
	var log bytes.Buffer
	logger := ratehttp.WithLogger(slog.New(slog.NewJSONHandler(&log, nil)))
	h := ratehttp.Middleware()(ratehttp.Middleware(logger)(client))
	for range 3 {
		answerOf(h)
	}
	checkLog(t, log.String(), "middleware_twice", mark)

	log.Reset()
	ratehttp.SetStandard(t, logger)
	for range 3 {
		limittest.Equal(t, "no client", ratehttp.ClientIP(t.Context()), "unknown")
	}
	checkLog(t, log.String(), "no_client", mark)
}

func checkLog(t *testing.T, log, code, never string) {
	t.Helper()
	if strings.Contains(log, never) {
		t.Errorf("the log has what a client sent: %s", log)
	}
	if code == "" {
		if log != "" {
			t.Errorf("a line about nothing: %s", log)
		}
		return
	}
	var line struct{ Level, Msg, Code, Help string }
	if err := json.Unmarshal([]byte(log), &line); err != nil || line.Level != "WARN" || line.Code != code || line.Help == "" || line.Msg == "" {
		t.Errorf("%s: %v %q", code, err, log)
	}
}

// The names of policies are public: what replicas call a rule depends on its name and the
// options alone, and not on which rules they met first.
func TestPolicyNames(t *testing.T) {
	rules := map[string]string{
		"employee.EmployeeService.GetByID":   "EmployeeService.GetByID",
		"employee.EmployeeService.GetByID#2": "EmployeeService.GetByID#2",
		"employee.EmployeeService":           "EmployeeService",
		"export":                             "export",
		"a.S.Get":                            "S.Get",
		"b.S.Get":                            "S.Get",
		"a.S.Mapped":                         "S.Mapped~", // a declared name is another's
		"p.Büro.Öffne":                       "B%C3%BCro.%C3%96ffne",
		"articles.get":                       "articles.get", // no generated name
		"articles.v1.get":                    "articles.v1.get",
		"internalFraudScore.perSecond":       "search~",
		"internalFraudScore.perDay":          "search~",
		"other":                              "S.Mapped",
		"p.":                                 "p.",
		"p.mapped":                           `a "public" name`,
		"p.hidden":                           "",
	}
	names := func(order ...string) map[string]string {
		got := map[string]string{}
		m := ratehttp.Middleware(ratehttp.WithLogger(silent),
			ratehttp.WithPolicy("p.mapped", ratefield.Policy{Name: `a "public" name`, Unit: "content-bytes"}),
			ratehttp.WithPolicy("export", ratefield.Policy{Unit: "requests"}),
			ratehttp.WithPolicy("other", ratefield.Policy{Name: "S.Mapped"}),
			ratehttp.WithPolicy("internalFraudScore.perSecond", ratefield.Policy{Name: "search"}),
			ratehttp.WithPolicy("internalFraudScore.perDay", ratefield.Policy{Name: "search"}),
			ratehttp.WithPolicy("p.h*", ratefield.Policy{Audience: ratefield.Internal}))
		for range 2 { // the second time all have been met
			for _, name := range order {
				rule := &runtime.Rule{Name: name, Window: time.Minute, Max: 1}
				limiter := newLimiter()
				h := m(taking(limiter, rule.Limit(nil)))
				resp := answerOf(h)
				before, met := got[name]
				got[name] = ""
				for _, it := range parse(t, resp.Header, "RateLimit-Policy") {
					got[name] = it.Name
					if unit := it.Params["qu"]; unit != nil != (name == "p.mapped") {
						t.Errorf("%s has the unit %v", name, unit)
					}
				}
				if met && got[name] != before {
					t.Errorf("%s was called %q and then %q", name, before, got[name])
				}
				violated, _ := problemOf(t, answerOf(h))["violated-policies"].([]any)
				if len(violated) == 0 != (got[name] == "") || len(violated) > 0 && violated[0] != got[name] {
					t.Errorf("%s is %q in the fields and %v in the document", name, got[name], violated)
				}
			}
		}
		return got
	}
	var order []string
	for name := range rules {
		order = append(order, name)
	}
	got := names(order...)
	for name, want := range rules {
		if !strings.HasPrefix(got[name], want) || !strings.HasSuffix(want, "~") && got[name] != want {
			t.Errorf("%s is called %q, not %q", name, got[name], want)
		}
	}
	if a, b := got["internalFraudScore.perSecond"], got["internalFraudScore.perDay"]; a == b || len(a) != len("search~")+8 {
		t.Errorf("two rules are called %q and %q", a, b)
	}
	for i, j := 0, len(order)-1; i < j; i, j = i+1, j-1 {
		order[i], order[j] = order[j], order[i]
	}
	if diff := cmp.Diff(got, names(order...)); diff != "" {
		t.Errorf("another order, other names:\n%s", diff)
	}
}
