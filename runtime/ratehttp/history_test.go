package ratehttp_test

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/seed"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// histories are those of two users, by days and by periods, of which the header User says whose they are.
type histories map[string]map[bool][]runtime.PastPeriod

func (h histories) of(r *http.Request, q ratehttp.HistoryQuery) (all []runtime.PastPeriod, err error) {
	user := r.Header.Get("User")
	if h[user] == nil {
		return nil, statusError(http.StatusUnauthorized)
	}
	for _, p := range h[user][q.Days] {
		if p.End.After(q.From) && (q.To.IsZero() || p.Start.Before(q.To)) {
			all = append(all, p)
		}
	}
	return all, nil
}

// by is a request of a user.
func by(user, query string, header ...string) func(*http.Request) {
	return func(r *http.Request) {
		r.URL.RawQuery = query
		r.Header.Set("User", user)
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
	}
}

func newHistories() histories {
	zone := time.FixedZone("", 5*3600+1800)
	h := histories{}
	for i, user := range []string{"ann", "bob"} {
		h[user] = map[bool][]runtime.PastPeriod{}
		for n := range 250 {
			day := time.Date(2026, 1, 1+n, 0, 0, 0, 0, zone)
			month := time.Date(2026, time.Month(1+n), 1, 0, 0, 0, 0, zone)
			h[user][true] = append(h[user][true], runtime.PastPeriod{Start: day, End: day.AddDate(0, 0, 1), Used: int64(1 + 1000*i + n)})
			h[user][false] = append(h[user][false], runtime.PastPeriod{Start: month, End: month.AddDate(0, 1, 0), Used: int64(1_000_000 + 1000*i + n)})
		}
	}
	return h
}

// readHistory returns the entries of an answer, and the query of the next page.
func readHistory(t *testing.T, resp *http.Response) (all []runtime.PastPeriod, next string) {
	t.Helper()
	body := bodyOf(t, resp)
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, body)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/csv") {
		lines, err := csv.NewReader(strings.NewReader(body)).ReadAll()
		if err != nil || len(lines) == 0 || cmp.Diff([]string{"start", "end", "used"}, lines[0]) != "" {
			t.Fatal(err, lines)
		}
		for _, line := range lines[1:] {
			var p runtime.PastPeriod
			var wrong error
			p.Start, err = time.Parse(time.RFC3339, line[0])
			p.End, wrong = time.Parse(time.RFC3339, line[1])
			if _, bad := fmt.Sscan(line[2], &p.Used); err != nil || wrong != nil || bad != nil {
				t.Fatal(line)
			}
			all = append(all, p)
		}
	} else {
		var answer struct {
			History []struct {
				Start, End time.Time
				Used       int64
			}
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || !strings.HasPrefix(body, `{"history":[`) {
			t.Fatal(err, body)
		}
		for _, p := range answer.History {
			all = append(all, runtime.PastPeriod(p))
		}
	}
	if link := resp.Header.Get("Link"); link != "" {
		next = strings.TrimSuffix(strings.TrimPrefix(link, "<?"), `>; rel="next"`)
	}
	return all, next
}

// A client reads all pages of what it asks for, in both formats, and nothing of another, whatever it
// asks by.
func TestHistory(t *testing.T) {
	random, all := seed.New(t), newHistories()
	h := ratehttp.History(all.of)
	for range 300 {
		user := []string{"ann", "bob"}[random.IntN(2)]
		days := random.IntN(2) == 0
		params := url.Values{"user": {"bob"}, "key": {"bob"}, "rule": {"*"}, "by": {"period"}, "limit": {fmt.Sprint(1 + random.IntN(300))}}
		if days {
			params.Set("by", "day")
		}
		var q ratehttp.HistoryQuery
		if random.IntN(2) == 0 {
			q.From = time.Date(2026, 1, random.IntN(400), random.IntN(24), 0, 0, 0, time.UTC)
			params.Set("from", q.From.Format(time.RFC3339))
		}
		if random.IntN(2) == 0 {
			q.To = time.Date(2026, time.Month(random.IntN(14)), 1, 0, 0, 0, 0, time.UTC)
			params.Set("to", q.To.Format(time.DateOnly))
		}
		if random.IntN(3) == 0 {
			params.Set("format", []string{"csv", "json"}[random.IntN(2)])
		}
		accept := []string{"", "text/csv", "application/json", "text/csv;q=0.5, application/json", "*/*"}[random.IntN(5)]
		lines := params.Get("format") == "csv" || params.Get("format") == "" && accept == "text/csv"
		q.Days = days
		request, _ := http.NewRequest(http.MethodGet, "/", nil)
		request.Header.Set("User", user)
		want, _ := all.of(request, q)
		var got []runtime.PastPeriod
		for query, pages := params.Encode(), 0; query != "" && pages < 300; pages++ {
			resp := answerOf(h, by(user, query, "Accept", accept))
			if media := resp.Header.Get("Content-Type"); strings.HasPrefix(media, "text/csv") != lines {
				t.Fatalf("%s, %q: %s", query, accept, media)
			}
			var page []runtime.PastPeriod
			page, query = readHistory(t, resp)
			got = append(got, page...)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s of %v, -want +got:\n%s", user, params, diff)
		}
	}
}

// Who has an answer gets it again only if it has changed. The tag of another's says nothing.
func TestHistoryTag(t *testing.T) {
	all := newHistories()
	h := ratehttp.History(all.of)
	first := answerOf(h, by("ann", ""))
	tag := first.Header.Get("ETag")
	if first.Header.Get("Cache-Control") != "private, no-cache" || first.Header.Get("Vary") != "Accept" || len(tag) != 34 {
		t.Error(first.Header)
	}
	for known, want := range map[string]int{tag: 304, `"x", W/` + tag: 304, "*": 304, `"x"`: 200, "": 200} {
		resp := answerOf(h, by("ann", "", "If-None-Match", known))
		if body := bodyOf(t, resp); resp.StatusCode != want || (want == 304) != (body == "") || resp.Header.Get("ETag") != tag {
			t.Errorf("%s: %d %q, want %d", known, resp.StatusCode, body, want)
		}
	}
	for _, other := range []func(*http.Request){by("bob", "", "If-None-Match", tag), by("ann", "format=csv", "If-None-Match", tag), by("ann", "by=day", "If-None-Match", tag)} {
		if resp := answerOf(h, other); resp.StatusCode != 200 || resp.Header.Get("ETag") == tag {
			t.Errorf("another answer is taken for the one of ann: %d %s", resp.StatusCode, resp.Header)
		}
	}
	all["ann"][false][99].Used++
	if resp := answerOf(h, by("ann", "", "If-None-Match", tag)); resp.StatusCode != 200 {
		t.Errorf("%d of what has changed", resp.StatusCode)
	}
}

// Parameters that mean nothing are errors, and an error of the function shows nothing.
func TestHistoryFails(t *testing.T) {
	all := newHistories()
	h := ratehttp.History(all.of)
	for query, want := range map[string]int{
		"limit=0": 400, "limit=1001": 400, "limit=x": 400, "limit=1000": 200, "by=hour": 400, "format=xml": 400, "from=yesterday": 400,
		"to=2026-02-30": 400, "to=2026-01-31T12:00:00": 400, "from=2026-01-31T12:00:00%2B05:30": 200, "by=%0d%0aX:1&limit=1": 400,
	} {
		if resp := answerOf(h, by("ann", query)); resp.StatusCode != want || want == 400 && resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v, want %d", query, resp.StatusCode, resp.Header, want)
		}
	}
	hostile := answerOf(h, by("ann", "limit=1&x=%0d%0aSet-Cookie:%20a%3E%3B"))
	if link := hostile.Header.Get("Link"); strings.ContainsAny(link[1:], "\r\n<") || strings.Count(link, ">") != 1 {
		t.Errorf("a client wrote %q", link)
	}
	if resp := answerOf(h, by("eve", "")); resp.StatusCode != http.StatusUnauthorized {
		t.Error(resp.Status)
	}
	failing := ratehttp.History(func(*http.Request, ratehttp.HistoryQuery) ([]runtime.PastPeriod, error) {
		return nil, errors.New("secret")
	})
	if resp := answerOf(failing); resp.StatusCode != 500 || strings.Contains(bodyOf(t, resp), "secret") {
		t.Error(resp.Status)
	}
	head := answerOf(h, by("ann", ""), func(r *http.Request) { r.Method = http.MethodHead })
	post := answerOf(h, by("ann", ""), func(r *http.Request) { r.Method = http.MethodPost })
	if head.StatusCode != 200 || post.StatusCode != 405 || post.Header.Get("Allow") != "GET, HEAD" {
		t.Error(head.Status, post.Status)
	}
	defer func() {
		if recover() == nil {
			t.Error("no function, and no panic")
		}
	}()
	ratehttp.History(nil)
}
