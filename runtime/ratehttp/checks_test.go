package ratehttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
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

// A program that asks for the client outside of a request is told, once.
func TestNoClient(t *testing.T) {
	var log bytes.Buffer
	ratehttp.SetStandard(t, ratehttp.WithLogger(slog.New(slog.NewJSONHandler(&log, nil))))
	for range 3 {
		limittest.Equal(t, "no client", ratehttp.ClientIP(t.Context()), "unknown")
	}
	var line struct{ Level, Msg, Code, Help string }
	if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Level != "WARN" || line.Code != "no_client" || line.Help == "" || line.Msg == "" {
		t.Errorf("%v %q", err, log.String())
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
