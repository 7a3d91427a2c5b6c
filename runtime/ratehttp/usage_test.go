package ratehttp_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/ratehttp"
	"github.com/rategen/rategen/runtime/rule"
)

// usagesOf returns a function that finds the usages of the user in the query.
func usagesOf(limiter *runtime.Limiter, rules ...*runtime.Rule) func(*http.Request) ([]runtime.Usage, error) {
	return func(r *http.Request) ([]runtime.Usage, error) {
		var limits []runtime.Limit
		for _, rule := range rules {
			limits = append(limits, rule.Limit(runtime.NewKey().AddString(r.URL.Query().Get("user"))))
		}
		return limiter.Usage(r.Context(), limits...)
	}
}

// A client reads what is left of its own limits, by itself and below a middleware, and
// nothing of limits that are hidden.
func TestUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter()
		declared := func(name string, max int64) *runtime.Rule {
			return &runtime.Rule{Name: name, Window: time.Minute, Max: max}
		}
		month := &runtime.Rule{Name: "shop.Orders.Place", Period: rule.Month, Max: 10, Algorithm: runtime.FixedWindow}
		bucket, shadow, none := declared("upload", 120), declared("shadow", 5), declared("none", 0)
		bucket.Algorithm, bucket.Burst = runtime.TokenBucket, 6
		shadow.Mode = runtime.ModeShadow
		full, internal, outgoing := declared("full", 1), declared("internal", 7), declared("out.peer", 8)
		rules := []*runtime.Rule{month, bucket, shadow, full, internal, outgoing, none}
		h := ratehttp.Usage(usagesOf(limiter, rules...))
		below := ratehttp.Middleware(ratehttp.WithLogger(silent), ratehttp.WithLegacyFields(),
			ratehttp.WithPolicy("internal", ratefield.Policy{Audience: ratefield.Internal}),
			ratehttp.WithPolicy("out.*", ratefield.Policy{Audience: ratefield.Outgoing}),
			ratehttp.WithPolicy("upload", ratefield.Policy{Name: "bytes", Unit: "content-bytes"}))(h)
		for _, r := range []*runtime.Rule{month, bucket, full} {
			if _, err := limiter.Take(t.Context(), r.Limit(runtime.NewKey().AddString("ann")).WithCost(min(r.Max, 3))); err != nil {
				t.Fatal(err)
			}
		}
		// The clock of a bubble begins with the year 2000.
		want := `{"limits":[` +
			`{"name":"Orders.Place","limit":10,"remaining":7,"window":2678400,"period":"month","reset":2678400,"retry_after":0},` +
			`{"name":"bytes","unit":"content-bytes","limit":6,"remaining":3,"window":3,"reset":2,"retry_after":0},` +
			`{"name":"full","limit":1,"remaining":0,"window":60,"reset":60,"retry_after":60},` +
			`{"name":"none","limit":0,"remaining":0,"window":60,"reset":0}]}` + "\n"
		for range 2 { // nothing is charged
			resp := answerOf(below, from("", "user=ann"))
			if diff := cmp.Diff(want, bodyOf(t, resp)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			header := resp.Header
			if got := header.Get("RateLimit-Policy"); got != `"Orders.Place";q=10;w=2678400, "bytes";q=6;qu="content-bytes";w=3, "full";q=1;w=60, "none";q=0;w=60` {
				t.Error(got)
			}
			if got := header.Get("RateLimit"); got != `"Orders.Place";r=7;t=2678400, "bytes";r=3;t=2, "full";r=0;t=60, "none";r=0` {
				t.Error(got)
			}
			if header.Get("X-RateLimit-Remaining") != "0" || header.Get("Cache-Control") != "no-store" || header.Get("Content-Type") != "application/json" {
				t.Error(header)
			}
		}
		// Another client has limits of its own, and one whose name tries to be something else.
		for _, query := range []string{"user=bob", "user=%22%7D%0d%0aX:%201", "user=" + strings.Repeat("x", 1<<20)} {
			body := bodyOf(t, answerOf(below, from("", query)))
			if !strings.Contains(body, `"remaining":10`) || strings.Count(body, "retry_after\":0") != 3 || len(body) != len(want)-1 {
				t.Errorf("%.40s: %s", query, body)
			}
		}
		// By itself the handler hides what refuses nobody.
		resp := answerOf(h, from("", "user=ann"))
		if body := bodyOf(t, resp); strings.Contains(body, "shadow") || len(parse(t, resp.Header, "RateLimit")) != 6 {
			t.Error(body, resp.Header)
		}
		head := answerOf(h, from("", "user=ann"), func(r *http.Request) { r.Method = http.MethodHead })
		post := answerOf(h, func(r *http.Request) { r.Method = http.MethodPost })
		if head.StatusCode != 200 || post.StatusCode != 405 || post.Header.Get("Allow") != "GET, HEAD" {
			t.Error(head, post)
		}
		silenced := answerOf(ratehttp.Middleware(ratehttp.WithoutFields())(h), from("", "user=ann"))
		if len(silenced.Header["Ratelimit"])+len(silenced.Header["Ratelimit-Policy"]) != 0 || silenced.StatusCode != 200 {
			t.Error(silenced.Header)
		}
		exempt := answerOf(h, func(r *http.Request) { *r = *r.WithContext(runtime.WithoutLimits(r.Context())) })
		if body := bodyOf(t, exempt); body != `{"limits":[]}`+"\n" || len(exempt.Header["Ratelimit-Policy"]) != 0 {
			t.Error(body, exempt.Header)
		}
	})
}

// A client reads what it has used of former periods, in its time zone.
func TestUsagePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter()
		month := &runtime.Rule{Name: "month", Period: rule.Month, Zone: "Asia/Kolkata", Keep: 2, Max: 10, Algorithm: runtime.FixedWindow}
		take := func() {
			if _, err := limiter.Take(t.Context(), month.Limit(runtime.NewKey().AddString("ann")).WithCost(3)); err != nil {
				t.Fatal(err)
			}
		}
		take()
		time.Sleep(31 * 24 * time.Hour) // till the 1st of February 2000
		take()
		for user, used := range map[string]string{"ann": "3", "bob": "0"} {
			want := `"past":[{"start":"2000-01-01T00:00:00+05:30","end":"2000-02-01T00:00:00+05:30","used":` + used +
				`},{"start":"1999-12-01T00:00:00+05:30","end":"2000-01-01T00:00:00+05:30","used":0}]}]}` + "\n"
			if body := bodyOf(t, answerOf(ratehttp.Usage(usagesOf(limiter, month)), from("", "user="+user))); !strings.HasSuffix(body, want) {
				t.Errorf("%s: %s, want it to end in %s", user, body, want)
			}
		}
	})
}

// An error tells its status, and no more than a refusal may.
func TestUsageFails(t *testing.T) {
	gone := runtime.New(nil, runtime.WithLogger(silent))
	for _, test := range []struct {
		left func(*http.Request) ([]runtime.Usage, error)
		want int
	}{
		{usagesOf(gone, &runtime.Rule{Name: "secret", Window: time.Minute, Max: 1}), 503},
		{usagesOf(newLimiter(), &runtime.Rule{Name: "secret"}), 500},
		{func(*http.Request) ([]runtime.Usage, error) { return nil, statusError(401) }, 401},
		{func(*http.Request) ([]runtime.Usage, error) { return nil, statusError(200) }, 500},
		{func(*http.Request) ([]runtime.Usage, error) { return nil, errors.New("secret") }, 500},
	} {
		resp := answerOf(ratehttp.Usage(test.left))
		if body := bodyOf(t, resp); resp.StatusCode != test.want || strings.Contains(body, "secret") || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("got %d %v %q, want %d", resp.StatusCode, resp.Header, body, test.want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("no function, and no panic")
		}
	}()
	ratehttp.Usage(nil)
}
