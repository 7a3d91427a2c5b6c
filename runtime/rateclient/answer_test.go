package rateclient

import (
	"bufio"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

// TestForms reads the forms that fields have, one at a time.
func TestForms(t *testing.T) {
	t.Parallel()
	const second, day = time.Second, 24 * time.Hour
	for _, c := range []struct {
		status int
		fields string
		hold   time.Duration
		quotas []Quota
	}{
		// Retry-After
		{429, "Retry-After: 0", 0, nil},
		{429, "Retry-After: 120", 120 * second, nil},
		{429, "Retry-After:  0.25 ", second / 4, nil},
		{429, "Retry-After: 999999999", maxTime, nil},
		{429, "Retry-After: 1000000000", 0, nil}, // as a Unix time, that is over
		{429, "Retry-After: 99999999999999999999999999", 0, nil},
		{429, "Retry-After: 1777863751", 30 * second, nil},
		{429, "Retry-After: 1777863751.25", 30250 * time.Millisecond, nil},
		{429, "Retry-After: 1777863751500", 30500 * time.Millisecond, nil},
		{429, "Retry-After: 1777863751500000", 30500 * time.Millisecond, nil},
		{429, "Retry-After: 1777863751500000000", 30500 * time.Millisecond, nil},
		{429, "Date: Thu, 01 Jan 2015 00:00:00 GMT\nRetry-After: 1420070410", 10 * second, nil},
		{429, "Retry-After: 30s", 30 * second, nil},
		{429, "Retry-After: 1m30.5s", 90500 * time.Millisecond, nil},
		{429, "Retry-After: 60 seconds", 60 * second, nil},
		{429, "Retry-After: 1 Minute 1 second", 61 * second, nil},
		{429, "Retry-After: 1 min", 60 * second, nil},
		{429, "Retry-After: 2 days", 48 * time.Hour, nil},
		{429, "Retry-After: 9000000 hours", maxTime, nil},
		{429, "Retry-After: PT60S", 60 * second, nil},
		{429, "Retry-After: PT1M1.5S", 61500 * time.Millisecond, nil},
		{429, "Retry-After: P1DT1H", 25 * time.Hour, nil},
		{429, "Retry-After: P1M", 0, nil}, // a month
		{429, "Retry-After: P", 0, nil},
		{429, "Retry-After: PT", 0, nil},
		{429, "Retry-After: 60 apples", 0, nil},
		{429, "Retry-After: seconds", 0, nil},
		{429, "Retry-After: -60 seconds", 0, nil},
		{429, "Retry-After: 17777777777777777777", 0, nil}, // 20 digits
		{429, "Retry-After: 30, 30", 30 * second, nil},
		{429, "Retry-After: 7,30 , 5", 30 * second, nil},
		{429, "Retry-After: " + strings.Repeat("1,", 1000) + "60", second, nil},
		{429, "Retry-After: Mon, 04 May 2026 03:02:31 UTC", 30 * second, nil},
		{429, "Retry-After: Mon, 4 May 2026 03:02:31 UTC", 30 * second, nil},
		{429, "Retry-After: Mon, 04 May 2026 03:02:31 +0000", 30 * second, nil},
		{429, "Retry-After: Mon, 04 May 2026 05:02:31 +0200", 30 * second, nil},
		{429, "Retry-After: Mon, 04 May 2026 03:02:31 PST", 0, nil}, // nobody knows which
		{429, "Retry-After: 2026-05-04T03:02:31Z", 30 * second, nil},
		{429, "Retry-After: 2026-05-04T03:02:31.500+00:00", 30500 * time.Millisecond, nil},
		{429, "Retry-After: 2026-05-04 03:02:31", 30 * second, nil},
		{429, "Retry-After: 2026-05-04 03:02:31 UTC", 30 * second, nil},
		{429, "Retry-After: 2026-05-04 03:02:31 +0000 UTC", 30 * second, nil},
		{429, "X-Ms-Retry-After-Ms: 9.5\nRetry-After: 1", 9500 * time.Microsecond, nil},
		{429, "Retry-After: 1" + strings.Repeat("0", 400), 0, nil},
		{429, "Retry-After: -1", 0, nil},
		{429, "Retry-After: 1e9", 0, nil},
		{429, "Retry-After: inf", 0, nil},
		{429, "Retry-After: 1.2.3", 0, nil},
		{429, "Retry-After: soon", 0, nil},
		{429, "Retry-After:", 0, nil},
		{429, "Retry-After: 5\nRetry-After: 7", 7 * second, nil},
		{429, "Retry-After-Ms: 1500\nRetry-After: 2", 1500 * time.Millisecond, nil},
		{429, "Retry-After: Mon, 04 May 2026 03:02:31 GMT", 30 * second, nil},
		{429, "Date: Thu, 01 Jan 1970 00:00:00 GMT\nRetry-After: Thu, 01 Jan 1970 00:00:09 GMT", 9 * second, nil},
		{429, "Retry-After: Thu, 01 Jan 1970 00:00:00 GMT", 0, nil},
		{429, "Retry-After: Monday, 04-May-26 03:02:31 GMT", 30 * second, nil},
		{429, "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", maxTime, nil},
		{503, "Retry-After: 9", 9 * second, nil},
		{200, "Retry-After: 9", 0, nil},

		// the three dialects of X-RateLimit-Reset, and dates
		{429, "X-RateLimit-Reset: 30", 30 * second, []Quota{{Limit: -1, Remaining: -1, Reset: 30 * second}}},
		{429, "X-RateLimit-Reset: 1777863751", 30 * second, []Quota{{Limit: -1, Remaining: -1, Reset: 30 * second}}},
		{429, "X-RateLimit-Reset: 1777863751.5", 30500 * time.Millisecond, []Quota{{Limit: -1, Remaining: -1, Reset: 30500 * time.Millisecond}}},
		{429, "X-RateLimit-Reset: 1777863751500", 30500 * time.Millisecond, []Quota{{Limit: -1, Remaining: -1, Reset: 30500 * time.Millisecond}}},
		{429, "X-RateLimit-Reset: 1777863751500000000", 30500 * time.Millisecond, []Quota{{Limit: -1, Remaining: -1, Reset: 30500 * time.Millisecond}}},
		{429, "X-RateLimit-Reset: 30, 30", 30 * second, []Quota{{Limit: -1, Remaining: -1, Reset: 30 * second}}},
		{429, "X-RateLimit-Reset: 41;w=60", 41 * second, []Quota{{Limit: -1, Remaining: -1, Reset: 41 * second}}},
		{429, "X-RateLimit-Reset: 2026-05-04T03:03Z", 59 * second, []Quota{{Limit: -1, Remaining: -1, Reset: 59 * second}}},
		{429, "X-RateLimit-Reset: Mon, 04 May 2026 03:02:31 UTC", 30 * second, []Quota{{Limit: -1, Remaining: -1, Reset: 30 * second}}},
		{429, "X-RateLimit-Reset: 2026-05-04 03:02:31 +0000", 30 * second, []Quota{{Limit: -1, Remaining: -1, Reset: 30 * second}}},
		// no window beside a reset says what its unit is: the next one may be of another limit, or round
		{429, "X-RateLimit-Limit: 100;w=60\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 61", 61 * second, []Quota{{Limit: 100, Window: 60 * second, Reset: 61 * second}}},
		{429, "X-RateLimit-Limit: 10, 10;w=1, 1000;w=3600\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1800", 1800 * second, []Quota{{Limit: 10, Window: second, Reset: 1800 * second}}},
		{429, "RateLimit-Policy: 10;w=1, 1000;w=3600\nRateLimit-Limit: 10\nRateLimit-Remaining: 0\nRateLimit-Reset: 900", 900 * second, []Quota{
			{Limit: 10, Window: second, Reset: 900 * second}, {Limit: 1000, Window: 3600 * second, Remaining: -1}}},
		{429, "X-RateLimit-Limit: 100;w=60\nX-RateLimit-Reset: 41250", 41250 * second, []Quota{{Limit: 100, Window: 60 * second, Remaining: -1, Reset: 41250 * second}}},
		// windows
		{200, "X-RateLimit-Limit: 100;window=60", 0, []Quota{{Limit: 100, Window: 60 * second, Remaining: -1}}},
		{200, "X-RateLimit-Limit: 100\nX-RateLimit-Period: 60", 0, []Quota{{Limit: 100, Window: 60 * second, Remaining: -1}}},
		{200, "X-RateLimit-Limit: 100\nX-RateLimit-Period: 1m", 0, []Quota{{Limit: 100, Window: 60 * second, Remaining: -1}}},
		{200, "X-RateLimit-Limit: 100\nX-RateLimit-Period: month", 0, []Quota{{Limit: 100, Remaining: -1}}},
		{429, "X-RateLimit-Reset: 1000000000", 0, []Quota{{Limit: -1, Remaining: -1}}},
		{429, "X-RateLimit-Reset: 999999999", maxTime, []Quota{{Limit: -1, Remaining: -1, Reset: maxTime}}},
		{429, "X-RateLimit-Reset: -5", 0, []Quota{{Limit: -1, Remaining: -1}}},
		{429, "X-RateLimit-Reset: Mon, 04 May 2026 03:02:31 GMT", 30 * second, []Quota{{Limit: -1, Remaining: -1, Reset: 30 * second}}},

		// contradictions: Retry-After wins, and what is left says that a reset does not matter
		{429, "Retry-After: 1\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 3600", second, []Quota{{Limit: -1, Remaining: 0, Reset: time.Hour}}},
		{429, "X-RateLimit-Remaining: 7\nX-RateLimit-Reset: 3600", 0, []Quota{{Limit: -1, Remaining: 7, Reset: time.Hour}}},

		// nothing is left, so nothing may be sent although this request was answered
		{200, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 5", 5 * second, []Quota{{Limit: -1, Remaining: 0, Reset: 5 * second}}},
		{200, `RateLimit: "a";r=0;t=5`, 5 * second, []Quota{{Name: "a", Limit: -1, Remaining: 0, Reset: 5 * second}}},
		{200, "Age: 3\n" + `RateLimit: "a";r=0;t=5`, 0, nil},
		{200, "RateLimit-Policy: \"a\";q=9;qu=\"concurrent-requests\"\n" + `RateLimit: "a";r=0;t=5`, 0, []Quota{
			{Name: "a", Unit: "concurrent-requests", Limit: 9, Remaining: 0, Reset: 5 * second}}},

		// a member that does not say what is left says nothing of the time
		{429, `RateLimit: "a";t=3180`, 0, nil},
		{429, "RateLimit-Policy: \"a\";q=9;w=3600\n" + `RateLimit: "a";t=3180`, 0, []Quota{{Name: "a", Limit: 9, Window: 3600 * second, Remaining: -1}}},
		// as is proposed for the next draft
		{200, "RateLimit-Policy: \"a\";q=9;w=60\nRateLimit-Partition: \"a\";user_id\n" + `RateLimit: "a";a=0;w=45;c=3;pk=:aGk=:`, 45 * second, []Quota{{Name: "a", Limit: 9, Window: 60 * second, Remaining: 0, Reset: 45 * second}}},
		{200, `RateLimit: "a";r=7;t=5;a=0;w=45`, 0, []Quota{{Name: "a", Limit: -1, Remaining: 7, Reset: 5 * second}}},

		// drafts 8 to 11, over several lines
		{200, "RateLimit-Policy: \"burst\";q=100;w=60;pk=:cHsdsRa894==:\nRateLimit-Policy: \"daily\"; q=1000; w=86400;qu=\"content-bytes\";acme-burst=3\nRateLimit: \"daily\";r=7;t=9, \"burst\";r=1", 0, []Quota{
			{Name: "burst", Limit: 100, Window: 60 * second, Remaining: 1},
			{Name: "daily", Unit: "content-bytes", Limit: 1000, Window: day, Remaining: 7, Reset: 9 * second}}},
		{200, `RateLimit-Policy: "a\"\\b";q=1`, 0, []Quota{{Name: `a"\b`, Limit: 1, Remaining: -1}}},
		{200, `RateLimit-Policy: "a";q=-1, "b";w=3`, 0, nil},
		// draft 7
		{200, "RateLimit-Policy: 100;w=60\nRateLimit: limit=100, remaining=50, reset=5", 0, []Quota{
			{Limit: 100, Window: 60 * second, Remaining: 50, Reset: 5 * second}}},
		{200, "RateLimit: limit=100, remaining=50, reset=5", 0, []Quota{{Limit: 100, Remaining: 50, Reset: 5 * second}}},
		// drafts 3 to 6
		{200, "RateLimit-Limit: 100, 100;w=60, 1000;w=3600\nRateLimit-Remaining: 50\nRateLimit-Reset: 5", 0, []Quota{
			{Limit: 100, Window: 60 * second, Remaining: 50, Reset: 5 * second}}},

		{200, "RateLimit-Policy: 3000;w=300\nRateLimit-Limit: 3000\nRateLimit-Remaining: 7\nRateLimit-Reset: 1777863751", 0, []Quota{
			{Limit: 3000, Window: 300 * second, Remaining: 7, Reset: 30 * second}}},
		{200, "RateLimit-Policy: 3000;w=300\nX-RateLimit-Remaining: 7", 0, []Quota{
			{Limit: 3000, Window: 300 * second, Remaining: -1}, {Limit: -1, Remaining: 7}}},

		// malformed
		{200, `RateLimit-Policy: "a";q=1,`, 0, nil},
		{200, `RateLimit-Policy: "a;q=1`, 0, nil},
		{200, `RateLimit-Policy: ;q=1`, 0, nil},
		{200, `RateLimit-Policy: "a";q=1 "b";q=2`, 0, nil},
		{200, `RateLimit-Policy: "a";pk=:x`, 0, nil},
		{200, `RateLimit-Policy: "a";q=99999999999999999999`, 0, nil},
		{200, "X-RateLimit-Limit: lots", 0, nil},
	} {
		for i := range c.quotas {
			if c.quotas[i].Unit == "" {
				c.quotas[i].Unit = "requests"
			}
		}
		got := ReadAnswer(c.status, headerOf(t, c.fields), now)
		if got.HoldOff != c.hold || !cmp.Equal(got.Quotas, c.quotas, cmpopts.IgnoreUnexported(Quota{}), cmpopts.EquateEmpty()) {
			t.Errorf("%d %q:\ngot  %v %+v\nwant %v %+v", c.status, c.fields, got.HoldOff, got.Quotas, c.hold, c.quotas)
		}
		if want := c.status == 429 || c.status == 503; got.Refused != want {
			t.Errorf("%d %q: refused: %v", c.status, c.fields, got.Refused)
		}
	}
}

// TestRefusals wants other statuses than 429 to be refusals if the answer says so.
func TestRefusals(t *testing.T) {
	t.Parallel()
	spent := "X-RateLimit-Limit: 9\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 5"
	for _, c := range []struct {
		status   int
		fields   string
		refusals []int
		refused  bool
	}{
		{429, "", refusals, true}, {503, "", refusals, false}, {529, "", refusals, false}, {418, "", refusals, false}, {403, "", refusals, false},
		{503, "Retry-After: 5", refusals, true}, {529, "Retry-After: 5", refusals, true}, {418, "Retry-After: 5", refusals, true}, {403, "Retry-After: 5", refusals, true},
		{503, "Retry-After: 0", refusals, false}, {403, "X-RateLimit-Remaining: 7\nX-RateLimit-Reset: 5", refusals, false},
		{403, spent, refusals, true}, {418, spent, refusals, true}, {400, spent, refusals, false}, {200, spent, refusals, false},
		{403, "X-RateLimit-Limit: 0\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 5", refusals, false},
		{400, spent, []int{400}, true}, {400, "", []int{400}, false}, {429, "Retry-After: 5", []int{400}, false},
		{408, "Retry-After: 5", refusals, false}, {413, "Retry-After: 5", refusals, false}, {413, "Retry-After: 5", []int{413}, true},
		{500, "Retry-After: 5", refusals, false}, {302, "Retry-After: 5", refusals, false},
	} {
		if a := readAnswer(c.status, headerOf(t, c.fields), now, c.refusals); a.Refused != c.refused || c.refused && c.fields != "" && a.HoldOff != 5*time.Second {
			t.Errorf("%d %q: %+v", c.status, c.fields, a)
		}
	}
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

// TestContradictions wants a limit of 0 on an answer that was served to say nothing.
func TestContradictions(t *testing.T) {
	t.Parallel()
	none := "X-RateLimit-Limit: 0\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 3600"
	a := ReadAnswer(200, headerOf(t, none+"\nRateLimit-Limit: 9\nRateLimit-Remaining: 7"), now)
	if a.HoldOff != 0 || !a.Contradicts || len(a.Quotas) != 1 || a.Quotas[0].Limit != 9 {
		t.Errorf("%+v", a)
	}
	if a := ReadAnswer(404, headerOf(t, none), now); a.HoldOff != 0 || a.Contradicts || len(a.Quotas) != 0 {
		t.Errorf("not found: %+v", a)
	}
	if a := ReadAnswer(429, headerOf(t, none), now); a.HoldOff != time.Hour || a.Contradicts || len(a.Quotas) != 1 {
		t.Errorf("refused: %+v", a)
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
