package ratepage_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/ratetally"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/ratehttp"
	"github.com/rategen/rategen/runtime/ratepage"
	"github.com/rategen/rategen/runtime/rule"
)

// TestSixMistakes has a program make six mistakes at once, and wants the log, the page, the
// metrics, the answer for health checks and the limiter to name the same six.
func TestSixMistakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out limittest.Lines
		page, tally := ratepage.New(), ratetally.New()
		limiter := runtime.New(runtime.NewMemoryStore(), out.Logger(),
			runtime.WithObserver(page.Observer()), runtime.WithObserver(tally.Observer()),
			runtime.WithReplicas(3), // 1: which count by themselves
			runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
				return runtime.Overrides{Rules: map[string]rule.Override{
					"orders":  {Keys: map[string]rule.KeyOverride{"acme:7": {Max: new(int64(9))}}}, // 2: a key has one part
					"uploads": {Max: new(int64(9))},                                                // 3: a rule that there is not
				}}, nil
			}), time.Second))
		get := func(declared *runtime.Rule, key func(*http.Request) string, cost int64) http.Handler {
			return ratehttp.RequestLimit{Limiter: limiter, Rule: declared, Key: key, Cost: func(*http.Request) int64 { return cost }}.Wrap(http.NotFoundHandler())
		}
		serve := func(h http.Handler, n int) {
			for i := range n {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.RemoteAddr = "203.0.113.7:" + string(rune('a'+i%20)) + strings.Repeat("1", i/20)
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		}
		orders := &runtime.Rule{Name: "orders", Window: time.Hour, Max: 5}
		serve(get(orders, func(r *http.Request) string { return r.RemoteAddr + "!" }, 1), 1000)                                    // 4: with the port
		serve(get(&runtime.Rule{Name: "search", Window: time.Hour, Max: 5}, func(*http.Request) string { return "all" }, 0), 1000) // 5: at no cost
		serve(get(&runtime.Rule{Name: "teams", Window: time.Hour, Max: 5}, func(*http.Request) string { return "" }, 1), 1)        // 6: nobody's
		time.Sleep(2 * time.Minute)

		want := []string{"distinct_keys orders", "empty_part teams", "memory_store_replicas", "nothing_charged search", "override_keys_unfit orders", "overrides_unmet uploads"}
		var ofNone []string
		wantSame := func(where string, got []string) {
			t.Helper()
			// Those of no limiter are of other tests, too.
			got = slices.DeleteFunc(got, func(f string) bool { return !slices.Contains(want, f) && slices.Contains(ofNone, f) })
			limittest.Same(t, where, want, got)
		}
		for _, f := range findings.Process.All() {
			ofNone = append(ofNone, strings.TrimSpace(f.Code+" "+f.Rule))
		}
		var found []string
		for _, f := range limiter.Findings() {
			found = append(found, strings.TrimSpace(f.Code+" "+f.Rule))
		}
		wantSame("limiter", found)

		type finding struct {
			Code, Rule string
			First      []string // of a page: what those of the code are about
		}
		listed := func(h http.Handler, path string) (found []string) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			var answer struct {
				Findings json.RawMessage
			}
			limittest.OK(t, json.Unmarshal(w.Body.Bytes(), &answer))
			var all []finding
			if err := json.Unmarshal(answer.Findings, &all); err != nil { // a page has how many are left out, too
				var view struct{ Findings []finding }
				limittest.OK(t, json.Unmarshal(answer.Findings, &view))
				all = view.Findings
			}
			for _, f := range all {
				for _, about := range f.First {
					rule, _, _ := strings.Cut(about, " ")
					found = append(found, f.Code+" "+rule)
				}
				if len(f.First) == 0 {
					found = append(found, strings.TrimSpace(f.Code+" "+f.Rule))
				}
			}
			slices.Sort(found)
			return found
		}
		wantSame("health", listed(ratehttp.Health(limiter), "/"))
		wantSame("page", listed(page, "/api/state"))

		var measured []string
		tally.Collect(func(f *ratetally.Family, _ float64, labels ...string) {
			if f.Name == "rategen.not_in_force" {
				measured = append(measured, strings.TrimSpace(labels[0]+" "+labels[1]))
			}
		})
		slices.Sort(measured)
		wantSame("metrics", measured)
		for _, f := range want {
			code, _, _ := strings.Cut(f, " ")
			if n := strings.Count(out.String(), "code="+code+" "); n != 1 {
				t.Errorf("the log has %s %d times:\n%s", code, n, out.String())
			}
		}
		if err := limiter.Close(); err != nil {
			t.Error(err)
		}
	})
}
