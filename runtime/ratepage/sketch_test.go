package ratepage

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
)

// TestSketchForgets wants refusals to be forgotten after one to two spans, and the
// keys of rules to be told apart.
func TestSketchForgets(t *testing.T) {
	t.Parallel()
	s := newSketch()
	now := time.Unix(0, 100*int64(sketchSpan))
	top := func() (all []string) {
		for _, k := range s.top(10, now) {
			all = append(all, fmt.Sprint(k.Rule, " ", k.Key, " ", k.Count))
		}
		return all
	}
	check := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, top()); diff != "" {
			t.Error(diff)
		}
	}
	s.add("a", []byte("x"), now)
	s.add("a", []byte("x"), now)
	s.add("b", []byte("x"), now)
	check("a x 2", "b x 1")
	now = now.Add(sketchSpan)
	s.add("b", []byte("x"), now)
	s.add("b", []byte("x"), now)
	check("b x 3", "a x 2")
	now = now.Add(sketchSpan)
	check("b x 2")
	now = now.Add(sketchSpan)
	check()
	s.add("b", []byte("y"), now)
	now = now.Add(10 * sketchSpan)
	check()
}

func TestMaskKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"": "", "ann": "•••", "anna": "•••", "annabel": "a•••l", "acme:robot:7": "•••:r•••t:•••",
		"203.0.113.7": "2•••7", "a%3Aabc": "•••", "日本語日本": "日•••本", "::": "::", "%sha256-00aa": "•••",
	} {
		limittest.Equal(t, key, maskKey(key), want)
	}
}

// TestKeysShown refuses a key and one that is no text, and reads what a page shows of
// them: nothing, masked, or what can be looked up.
func TestKeysShown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options []Option
		keys    []string
	}{
		"off":    {nil, nil},
		"masked": {[]Option{WithKeys()}, []string{"a•••l:•••", "•••"}},
		"plain":  {[]Option{WithPlainKeys()}, []string{"annabel:7", "%FF%FE"}},
	} {
		page := New(test.options...)
		rule := &runtime.Rule{Name: "r", Max: 1, Window: time.Hour}
		limiter := newLimiter(t, page, rule)
		for range 4 {
			_, _ = limiter.Take(t.Context(), rule.Limit(runtime.NewKey().AddString("annabel").AddInt(7)))
		}
		for range 3 {
			_, _ = limiter.Take(t.Context(), rule.Limit(runtime.NewKey().AddString("\xff\xfe")))
		}
		state := decoded[stateView](t, ask(page, "GET", "/api/state", ""))
		var shown hotKeysView
		limittest.OK(t, json.Unmarshal(state.Refused, &shown))
		var keys []string
		for _, k := range shown.Keys {
			keys = append(keys, k.Key)
		}
		if diff := cmp.Diff(test.keys, keys); diff != "" || state.Keys != name {
			t.Errorf("%s, which says %s: %s", name, state.Keys, diff)
		}
	}
	page := New(WithPlainKeys())
	rule := &runtime.Rule{Name: "r", Max: 1, Window: time.Hour}
	limiter := newLimiter(t, page, rule)
	_, _ = limiter.Take(t.Context(), rule.Limit(runtime.NewKey().AddString("\xff\xfe")))
	v := decoded[keyView](t, ask(page, "GET", "/api/keys?rule=r&key=%25FF%25FE", ""))
	if v.Key != "%FF%FE" || *v.Limits[0].Remaining != 0 {
		t.Errorf("a key that is no text: %+v", v)
	}
}
