package ratehttp

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A HistoryQuery is what a request asks [History] for: periods of the calendar, or days, that end after
// From and begin before To. A zero time is no bound.
type HistoryQuery struct {
	From, To time.Time
	Days     bool
}

// History returns a handler that tells clients what they have used of past periods and of the present
// one, such as a ledger has it. Used finds the client that a request is from, and returns its periods
// or days in order:
//
//	mux.Handle("GET /history", ratehttp.History(func(r *http.Request, q ratehttp.HistoryQuery) ([]runtime.PastPeriod, error) {
//		user := runtime.NewKey().AddString(userOf(r))
//		return ledger.History(r.Context(), "orders.Service.Place", user.String(), q.From, q.To, q.Days)
//	}))
//
// A client asks by the parameters from and to, dates such as 2026-01-31 in UTC or times as in RFC
// 3339; by=day; limit, of 1 to 1000 entries, by default 100; and format=csv, or a header Accept that
// prefers text/csv. The answer to GET and HEAD is an object with a member history, a list of objects
// with start and end, as in RFC 3339, and used; or the same as lines. If there is more, the header Link
// has the next page. An ETag saves who asks again the answer, which is for the client alone.
//
// Whose history that is no parameter says: used must tell it by who the client has proved to be. Its
// errors are answered as those of [Usage], and a wrong parameter by 400. It panics if used is nil.
func History(used func(*http.Request, HistoryQuery) ([]runtime.PastPeriod, error)) http.Handler {
	if used == nil {
		panic("ratehttp: the function of History is nil")
	}
	return history(used)
}

type history func(*http.Request, HistoryQuery) ([]runtime.PastPeriod, error)

func (used history) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		return
	}
	params := r.URL.Query()
	q, limit, err := parseHistory(params)
	if err != nil {
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	periods, err := used(r, q)
	if err != nil {
		failUsage(w, r, err)
		return
	}
	h := w.Header()
	if len(periods) > limit {
		periods = periods[:limit]
		params.Set("from", periods[limit-1].End.UTC().Format(time.RFC3339Nano))
		h.Add("Link", "<?"+params.Encode()+`>; rel="next"`)
	}
	mediaType, write := "application/json", writeHistory
	if params.Get("format") == "csv" || params.Get("format") == "" && prefers(r.Header["Accept"], "text/csv", "application/json") {
		mediaType, write = "text/csv; charset=utf-8", writeCSV
	}
	body := write(periods)
	sum := sha256.Sum256(body)
	tag := fmt.Sprintf(`"%x"`, sum[:16])
	h.Set("ETag", tag)
	h.Set("Cache-Control", "private, no-cache")
	h.Add("Vary", "Accept")
	h.Set("X-Content-Type-Options", "nosniff")
	if hasTag(r.Header["If-None-Match"], tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	send(w, http.StatusOK, mediaType, body)
}

const historyLimit, mostHistory = 100, 1000

// parseHistory reads the parameters of a request.
func parseHistory(params url.Values) (q HistoryQuery, limit int, err error) {
	from, wrongFrom := parseTime(params.Get("from"))
	to, wrongTo := parseTime(params.Get("to"))
	if wrongFrom != nil || wrongTo != nil {
		return q, 0, errors.New("from and to are dates such as 2026-01-31, or times such as 2026-01-31T12:00:00Z")
	}
	by, format := params.Get("by"), params.Get("format")
	if by != "" && by != "day" && by != "period" || format != "" && format != "csv" && format != "json" {
		return q, 0, errors.New("by is day or period, and format json or csv")
	}
	limit = historyLimit
	if n := params.Get("limit"); n != "" {
		limit, err = strconv.Atoi(n)
	}
	if err != nil || limit < 1 || limit > mostHistory {
		return q, 0, fmt.Errorf("limit is a number between 1 and %d", mostHistory)
	}
	return HistoryQuery{from, to, by == "day"}, limit, nil
}

func parseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339, text)
}

func writeHistory(periods []runtime.PastPeriod) []byte {
	views := make([]past, len(periods))
	for i, p := range periods {
		views[i] = past(p)
	}
	body, _ := json.Marshal(map[string][]past{"history": views}) // times and numbers
	return append(body, '\n')
}

func writeCSV(periods []runtime.PastPeriod) []byte {
	body := bytes.NewBufferString("start,end,used\r\n")
	for _, p := range periods {
		fmt.Fprintf(body, "%s,%s,%d\r\n", p.Start.Format(time.RFC3339), p.End.Format(time.RFC3339), p.Used)
	}
	return body.Bytes()
}

// hasTag reports whether the lines of a header If-None-Match have a tag: RFC 9110, section 13.1.2.
func hasTag(lines []string, tag string) bool {
	for _, line := range lines {
		for known := range strings.SplitSeq(line, ",") {
			known = strings.Trim(known, " \t")
			if known == "*" || strings.TrimPrefix(known, "W/") == tag {
				return true
			}
		}
	}
	return false
}
