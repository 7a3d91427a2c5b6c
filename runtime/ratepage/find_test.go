package ratepage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestFindKey looks a key up without a rule: of 200 rules it finds those that concern it, what
// keeps the caller out first.
func TestFindKey(t *testing.T) {
	t.Parallel()
	page := New()
	rules := make([]*runtime.Rule, 200)
	for i := range rules {
		rules[i] = &runtime.Rule{Name: fmt.Sprintf("r%03d", i), Max: 5, Window: time.Hour}
	}
	rules[7].Max = 0 // each call brings its own
	limiter := newLimiter(t, page, rules...)
	take := func(i, n int, max int64, parts ...string) {
		key := runtime.NewKey()
		for _, part := range parts {
			key.AddString(part)
		}
		limit := rules[i].Limit(key)
		if max > 0 {
			limit = limit.WithMax(max)
		}
		for range n {
			_, _ = limiter.Take(t.Context(), limit)
		}
	}
	take(3, 2, 0, "acme")
	take(4, 6, 0, "acme")
	take(5, 1, 0, "other")
	take(6, 1, 0, "acme", "ann")
	take(7, 3, 9, "acme")
	v := decoded[keyView](t, ask(page, "GET", "/api/keys?key=acme", ""))
	var got []string
	for _, l := range v.Limits {
		got = append(got, fmt.Sprint(l.Rule, " ", l.Used, " ", l.State.State))
	}
	if diff := cmp.Diff([]string{"r004 5 refused", "r007 3 unknown", "r003 2 ok"}, got); diff != "" || v.Others != 197 {
		t.Errorf("%d others (-want +got):\n%s", v.Others, diff)
	}
	if w := ask(page, "GET", "/api/keys", ""); w.Code != 400 || !strings.Contains(w.Body.String(), "name a rule, or the key") {
		t.Errorf("nothing is asked: %d %s", w.Code, w.Body)
	}
	down := New()
	away := runtime.New(rawstore.New(downStore{}, nil), runtime.WithLogger(quiet), runtime.WithObserver(down.Observer()))
	away.Register(rules[0])
	if v := decoded[keyView](t, ask(down, "GET", "/api/keys?key=acme", "")); len(v.Limits) != 1 || v.Limits[0].Error != "connection" || v.Limits[0].Rule != "r000" {
		t.Errorf("while the store is away: %+v", v)
	}
}
