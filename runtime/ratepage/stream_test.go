package ratepage

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
)

// A viewer follows a stream.
type viewer struct {
	t       *testing.T
	lines   *bufio.Scanner
	leave   context.CancelFunc
	status  int
	headers http.Header
}

// A piped is a writer whose answer is read from a pipe. No network is between, on which a
// bubble's time would stand still.
type piped struct {
	*io.PipeWriter
	header http.Header
}

func (p piped) Header() http.Header { return p.header }
func (p piped) WriteHeader(int)     {}
func (p piped) Flush()              {}

// follow has a viewer follow a page in a bubble.
func follow(t *testing.T, page *Page) *viewer {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	body, answer := io.Pipe()
	go func() {
		page.ServeHTTP(piped{answer, http.Header{}}, httptest.NewRequestWithContext(ctx, "GET", "/api/stream", nil))
		_ = answer.Close()
	}()
	t.Cleanup(func() { leave(); _ = body.Close() })
	return &viewer{t: t, lines: lines(body), leave: leave}
}

func open(t *testing.T, server *httptest.Server) *viewer {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	r, _ := http.NewRequestWithContext(ctx, "GET", server.URL+"/api/stream", nil)
	answer, err := server.Client().Do(r)
	limittest.OK(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	return &viewer{t, lines(answer.Body), leave, answer.StatusCode, answer.Header}
}

func lines(of io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(of)
	s.Buffer(nil, 1<<20)
	return s
}

// next returns the next event, or false when the stream has ended.
func (v *viewer) next() (event string, f frame, ok bool) {
	v.t.Helper()
	for v.lines.Scan() {
		name, value, _ := strings.Cut(v.lines.Text(), ": ")
		switch name {
		case "event":
			event = value
		case "data":
			if err := json.Unmarshal([]byte(value), &f); err != nil {
				v.t.Fatalf("%v: %s", err, value)
			}
			return event, f, true
		}
	}
	return "", f, false
}

// until reads events until one is as wanted, for a minute.
func (v *viewer) until(what string, wanted func(frame) bool) {
	v.t.Helper()
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		_, f, ok := v.next()
		if !ok {
			v.t.Fatalf("the stream ended before %s", what)
		}
		if wanted(f) {
			return
		}
	}
	v.t.Fatalf("a minute of the stream has not %s", what)
}

func serve(t *testing.T, page *Page) *httptest.Server {
	server := httptest.NewServer(page)
	t.Cleanup(server.Close)
	t.Cleanup(page.Close)
	return server
}

// TestStream follows the calls of two rules, a refused key, a new rule and an
// action.
func TestStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		page := New(WithPlainKeys())
		rule := &runtime.Rule{Name: "r", Max: 2, Window: time.Hour}
		limiter := newLimiter(t, page, rule)
		v := follow(t, page)
		event, first, _ := v.next()
		if event != "state" || first.Version == 0 || !first.Enabled || first.Redis == nil || first.History == nil || first.Refused == nil {
			t.Fatalf("%s %+v", event, first)
		}
		v.until("a sample", func(f frame) bool { return f.Point != nil })
		for range 5 {
			_, _ = limiter.Take(t.Context(), rule.Limit(runtime.NewKey().AddString("ann")))
		}
		var sum [columns]uint64
		listed := false
		v.until("all calls and the key", func(f frame) bool {
			for _, r := range f.Rows {
				for i := range sum {
					sum[i] += r.N[i]
				}
			}
			listed = listed || strings.Contains(string(f.Refused), `{"rule":"r","key":"ann","count":3,"margin":0}`)
			return sum == [columns]uint64{admitted: 2, refused: 3} && listed
		})
		limiter.Register(&runtime.Rule{Name: "s", Max: 2, Window: time.Hour})
		v.until("a new rule", func(f frame) bool { return f.Reload && f.Version > first.Version })
		page.history.add(historyEntry{Note: "hello"})
		v.until("an entry of the history", func(f frame) bool { return strings.Contains(string(f.History), "hello") })
	})
}

// TestViewers wants the next viewer to be refused, one that leaves to make room,
// and all streams to end when the page is closed.
func TestViewers(t *testing.T) {
	t.Parallel()
	page := New(WithViewers(2))
	newLimiter(t, page)
	server := serve(t, page)
	first, second := open(t, server), open(t, server)
	if first.status != 200 || first.headers.Get("Content-Type") != "text/event-stream; charset=utf-8" || first.headers.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", first.status, first.headers)
	}
	if _, _, ok := second.next(); !ok {
		t.Fatal("no state")
	}
	if third := open(t, server); third.status != 503 || third.headers.Get("Retry-After") == "" {
		t.Fatalf("a third viewer: %d", third.status)
	}
	first.leave()
	for page.looking.Load() > 1 {
		time.Sleep(time.Millisecond)
	}
	if third := open(t, server); third.status != 200 {
		t.Fatalf("after one has left: %d", third.status)
	}
	page.Close()
	page.Close()
	for {
		if _, _, ok := second.next(); !ok {
			break
		}
	}
	for page.looking.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// TestOperatorsHaveRoom keeps a quarter of the streams for those who may act: viewers who may
// not leave it free.
func TestOperatorsHaveRoom(t *testing.T) {
	t.Parallel()
	nobody := func(*http.Request, Action) (string, error) { return "", errors.New("no") }
	page := New(WithViewers(4), WithActions(nobody, nil), WithOffers(func(r *http.Request, _ Kind) bool { return r.URL.Query().Has("operator") }))
	newLimiter(t, page)
	idle := httptest.NewServer(page)
	defer idle.Close()
	operator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.RawQuery = "operator"
		page.ServeHTTP(w, r)
	}))
	defer operator.Close()
	defer page.Close() // which ends the streams that the servers wait for
	for i, c := range []struct {
		server *httptest.Server
		status int
	}{{idle, 200}, {idle, 200}, {idle, 200}, {idle, 503}, {operator, 200}, {operator, 503}} {
		v := open(t, c.server)
		if v.status != c.status {
			t.Errorf("viewer %d: %d, want %d", i, v.status, c.status)
		}
		if v.status == 200 {
			v.next()
		}
	}
}

// A hidden is a writer as middleware may wrap it: without Flush and Unwrap.
type hidden struct{ w http.ResponseWriter }

func (h hidden) Header() http.Header         { return h.w.Header() }
func (h hidden) Write(b []byte) (int, error) { return h.w.Write(b) }
func (h hidden) WriteHeader(status int)      { h.w.WriteHeader(status) }

// TestHiddenFlush wants an error that says why there is no stream.
func TestHiddenFlush(t *testing.T) {
	t.Parallel()
	page := New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { page.ServeHTTP(hidden{w}, r) }))
	defer server.Close()
	answer, err := server.Client().Get(server.URL + "/api/stream")
	limittest.OK(t, err)
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != 500 || !strings.HasPrefix(kind, "application/json") || !strings.Contains(string(body), "Unwrap") {
		t.Errorf("%d %s %s", answer.StatusCode, kind, body)
	}
}

// TestBusiest wants the rows that refuse most, then those of most undecided, shadow and admitted calls, by name.
func TestBusiest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, maxRows - 1, maxRows, maxRows + 1, 2*maxRows - 1, 2 * maxRows, 5 * maxRows} {
		rows := make([]row, n)
		for i := range rows {
			rows[i] = row{fmt.Sprint("r", i), [columns]uint64{r.Uint64N(9), r.Uint64N(3), r.Uint64N(3), r.Uint64N(2)}, 0, 0}
		}
		got, out := busiest(slices.Clone(rows))
		slices.SortFunc(rows, func(a, b row) int {
			return cmp.Or(slices.Compare([]uint64{b.N[1], b.N[3], b.N[2], b.N[0]}, []uint64{a.N[1], a.N[3], a.N[2], a.N[0]}), strings.Compare(a.Name, b.Name))
		})
		if want := rows[:min(n, maxRows)]; !slices.Equal(got, want) || out != n-len(want) {
			t.Errorf("of %d: %d and %d left out", n, len(got), out)
		}
	}
}

// TestSampler takes samples at times of the test's: a pause makes no rate, and
// viewers at the same moment share a sample.
func TestSampler(t *testing.T) {
	t.Parallel()
	page := New()
	rule := &runtime.Rule{Name: "r", Max: 1000, Window: time.Hour}
	limiter := newLimiter(t, page, rule)
	take := func(n int) {
		for range n {
			_, _ = limiter.Take(t.Context(), rule.Limit(nil))
		}
	}
	at := time.Now()
	next := func(after time.Duration) (int64, frame) {
		t.Helper()
		at = at.Add(after)
		e := page.sampler.next(page, at)
		var f frame
		limittest.OK(t, json.Unmarshal(e.data, &f))
		return e.number, f
	}
	take(3)
	one, f := next(0)
	if f.Point != nil || len(f.Rows) != 0 {
		t.Errorf("before the first sample nobody knows when calls were: %+v", f)
	}
	take(5)
	if again, _ := next(time.Millisecond); again != one {
		t.Error("two samples at one moment")
	}
	two, f := next(time.Second)
	if two != one+1 || f.Point == nil || f.Point.N[admitted] != 5 || f.Rows[0] != (row{"r", [columns]uint64{admitted: 5}, 0, 0}) || f.Redis != nil || f.History != nil {
		t.Errorf("frame %d: %+v", two, f)
	}
	if _, f = next(time.Second); len(f.Rows) != 0 || f.Point.N != [columns]uint64{} {
		t.Errorf("a quiet second: %+v", f)
	}
	take(7)
	if _, f = next(time.Minute); f.Point != nil {
		t.Errorf("after a pause: %+v", f)
	}
	if _, f = next(-time.Hour); f.Point != nil {
		t.Errorf("after the clock was set back: %+v", f)
	}
	if data := page.sampler.state(page, at, nil).data; !strings.Contains(string(data), `"totals":[15,0,0,0]`) {
		t.Errorf("state: %s", data)
	}
	for range 2 * maxPoints {
		next(time.Second)
	}
	if n := len(page.sampler.points); n != maxPoints {
		t.Errorf("%d points, want %d", n, maxPoints)
	}
}
