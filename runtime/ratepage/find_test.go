package ratepage

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
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

// TestSearch finds, by a part of their keys, callers that processes have refused in the last day and those with an override.
// A viewer who sees keys masked must know a whole part of one.
func TestSearch(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	editor := override.NewEditor(client, "limits")
	allow := func(*http.Request, Action) (string, error) { return "ada", nil }
	seen := map[string]*Page{"plain": New(WithPlainKeys(), WithActions(allow, editor)), "masked": New(WithKeys(), WithActions(allow, editor))}
	var limiters []*runtime.Limiter
	for _, page := range seen {
		l := runtime.New(runtime.NewRedisStore(client), runtime.WithLogger(quiet), runtime.WithObserver(page.Observer()), runtime.WithoutReports())
		defer l.Close()
		l.Register(&runtime.Rule{Name: "orders.acme", Window: time.Hour, Max: 5})
		l.Register(&runtime.Rule{Name: "mail", Window: time.Hour, Max: 5})
		limiters = append(limiters, l)
	}
	minute := time.Now().Unix() / 60
	told := fmt.Sprint(minute, "\nmail\tacme-7:ann\t3\nmail\tacme:bob\t9\nmail\tother\t50\n")
	limittest.OK(t, client.ZAdd(t.Context(), "rate_limit:{processes}:refused", redis.Z{Score: float64(minute), Member: told}).Err())
	_, err := editor.Edit(t.Context(), override.Edit{Target: override.Target{Rule: "mail", Pattern: "acme-9", Keys: true}, Block: true})
	limittest.OK(t, err)
	search := func(page, text string) (found []string, v keyView) {
		v = decoded[keyView](t, ask(seen[page], "GET", "/api/keys?key="+text, ""))
		for _, k := range v.Keys {
			refused := int64(0)
			if k.Refused != nil {
				refused = k.Refused.Refused
			}
			found = append(found, fmt.Sprint(k.Key, " ", k.State.State, " ", refused))
		}
		return found, v
	}
	found, v := search("plain", "acme")
	if diff := cmp.Diff([]string{"acme:bob ok 9", "acme-7:ann ok 3", "acme-9 ok 0"}, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"orders.acme"}, v.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if found, _ := search("masked", "acme"); !slices.Equal(found, []string{"•••:••• ok 9"}) {
		t.Errorf("masked: %q", found)
	}
	if found, _ := search("masked", "acm"); found != nil {
		t.Errorf("a part of a part is told to who sees no keys: %q", found)
	}
	_, err = limiters[0].Take(t.Context(), limiters[0].Rules()[0].Rule.Limit(runtime.NewKey().AddString("acme").AddString("bob")))
	limittest.OK(t, err)
	if found, v := search("plain", "acme:bob"); len(found) > 0 || len(v.Limits) != 1 { // it is shown once
		t.Errorf("a key by its whole text: %q, %+v", found, v.Limits)
	}
	server.Pause()
	defer server.Resume()
	began := time.Now()
	if _, v := search("plain", "acme"); v.Unread == "" {
		t.Errorf("while Redis gives no answer it is not said that not all is known: %+v", v)
	}
	// The store gives up after 50 ms, the client of these tests after 30 s: a viewer does not wait for that.
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("while Redis gives no answer the page has none for %v", took)
	}
}
