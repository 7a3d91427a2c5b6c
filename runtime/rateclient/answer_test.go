package rateclient

import (
	"bufio"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
)

// now is when all answers of these tests arrive, by a clock that differs from the peers'.
var now = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// headerOf reads fields, one a line.
func headerOf(t testing.TB, fields string) http.Header {
	t.Helper()
	h, err := textproto.NewReader(bufio.NewReader(strings.NewReader(strings.TrimSpace(fields) + "\r\n\r\n"))).ReadMIMEHeader()
	if err != nil {
		t.Fatalf("%v in %q", err, fields)
	}
	return http.Header(h)
}

// TestForms reads answers of all forms.
func TestForms(t *testing.T) {
	document.Run(t, "testdata/forms.txt", "all", func(t *testing.T, s *document.Scenario, world document.World, _ *strings.Replacer) {
		list := refusals
		for _, l := range s.Lines {
			first, fields, _ := strings.Cut(l.Step, " ")
			if status, err := strconv.Atoi(first); err == nil {
				a := readAnswer(status, headerOf(t, strings.ReplaceAll(document.Expand(fields), " | ", "\n")), now, list)
				l.Answer(t, world, said(&a))
			} else if n, err := strconv.Atoi(fields); err == nil { // of refusals STATUS
				list = []int{n}
			} else {
				list = refusals
			}
		}
	})
}

// TestEndlessFields wants fields without end to be read as far as their bounds.
func TestEndlessFields(t *testing.T) {
	h := http.Header{}
	for range 100_000 {
		h["Retry-After"] = append(h["Retry-After"], "1")
		h["Ratelimit"] = append(h["Ratelimit"], `"a";r=1`)
	}
	h["Retry-After"] = append(h["Retry-After"], "60")
	h["Ratelimit-Policy"] = []string{strings.Repeat(`"a";q=1,`, 10_000) + `"a";q=1`}
	h["X-Ratelimit-Limit"] = []string{strings.Repeat("1", 1<<20)}
	h["X-Ratelimit-Reset"] = []string{strings.Repeat("1h", 1<<20)}
	h["Date"] = []string{strings.Repeat("Mon, ", 1<<20)}
	var a Answer
	if n := testing.AllocsPerRun(10, func() { a = ReadAnswer(429, h, now) }); n > 1000 || a.HoldOff != time.Second || len(a.Quotas) != maxQuotas {
		t.Errorf("%v allocations; %+v", n, a)
	}
}

// FuzzAnswer wants every answer to be within its bounds.
func FuzzAnswer(f *testing.F) {
	f.Add(429, "Retry-After", "5", "X-Ratelimit-Reset", "1777863751")
	f.Add(200, "Ratelimit-Policy", `"a";q=5;w=60;pk=:aGk=:, "b";q=7`, "Ratelimit", `"a";r=3;t=2`)
	f.Add(403, "Ratelimit", "limit=1, remaining=0, reset=9", "Date", "Thu, 01 Jan 1970 00:00:00 GMT")
	f.Add(503, "Anthropic-Ratelimit-Tokens-Reset", "2024-03-26T20:00:00Z", "X-Shopify-Shop-Api-Call-Limit", "41/40")
	f.Add(400, "X-Ratelimit-Limit", "100;window=60", "X-Ratelimit-Reset", "41250")
	f.Add(418, "Retry-After", "Mon, 4 May 2026 03:02:31 UTC", "X-Ratelimit-Period", "1m")
	f.Add(529, "X-Hubspot-Ratelimit-Max", "7", "X-Hubspot-Ratelimit-Interval-Milliseconds", "99999999999999")
	f.Add(429, "Retry-After", "30, 1777863751500000000", "Ratelimit", `"a";a=3;w=2;c=1`)
	f.Fuzz(func(t *testing.T, status int, field, value, other, otherValue string) {
		h := http.Header{field: {value}, other: {otherValue, value}}
		a := ReadAnswer(status, h, now)
		if a.HoldOff < 0 || a.HoldOff > maxTime || len(a.Quotas) > maxQuotas {
			t.Fatalf("%v: %+v", h, a)
		}
		for _, q := range a.Quotas {
			if q.Limit < -1 || q.Remaining < -1 || q.Unit == "" || q.Window < 0 || q.Reset < 0 || q.Window > maxTime || q.Reset > maxTime {
				t.Fatalf("%v: %+v", h, q)
			}
		}
	})
}
