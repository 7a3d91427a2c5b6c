package rateclient

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime/rateclient/internal/limitfields"
)

// bodies are the ready functions for bodies.
var bodies = map[string]Body{
	"GoogleBody": GoogleBody(), "GitHubBody": GitHubBody(), "TelegramBody": TelegramBody(), "KrakenBody": KrakenBody(),
	"ShopifyBody": ShopifyBody(), "AWSBody": AWSBody(),
}

// said is what an answer says, in the words of testdata/answers.txt.
func said(a *Answer) string {
	text := "-"
	if a.Refused {
		text = "refused"
	} else if a.HoldOff > 0 {
		text = "hold"
	}
	if a.HoldOff > 0 {
		text += fmt.Sprint(" ", a.HoldOff)
	}
	for _, q := range a.Quotas {
		text += " |"
		if q.Name != "" {
			text += " " + q.Name
		}
		text += " " + q.Unit
		if q.Limit >= 0 {
			text += fmt.Sprint(" ", q.Limit)
		}
		if q.Window > 0 {
			text += fmt.Sprint("/", q.Window)
		}
		if q.Remaining >= 0 {
			text += fmt.Sprint(" left ", q.Remaining)
		}
		if q.Reset > 0 {
			text += fmt.Sprint(" reset ", q.Reset)
		}
	}
	if a.Contradicts {
		text += " | contradicts"
	}
	return text
}

// TestRecordedAnswers reads what services have answered, as far as public pages show it.
func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("testdata/answers.txt")
	if err != nil {
		t.Fatal(err)
	}
	services, read := map[string]bool{}, 0
	for _, record := range strings.Split(string(file), "\n# ")[1:] {
		lines := strings.SplitN(record, "\n", 5)
		name, source, want, kind := lines[0], lines[1], lines[2], strings.Fields(lines[3])
		service, _, _ := strings.Cut(name, ",")
		services[service] = true
		fields, body, _ := strings.Cut("\n"+lines[4], "\n\n")
		var status int
		if _, err := fmt.Sscan(kind[0], &status); err != nil || !strings.HasPrefix(source, "https://") {
			t.Fatalf("%s: %q %v", name, lines[:4], err)
		}
		c := &Call{transport: new(Transport), peer: &peer{Peer: Peer{Refusals: refusals}}}
		for _, with := range kind[1:] {
			if with == "+400" {
				c.peer.Refusals = append(slices.Clone(refusals), 400)
			} else if c.peer.Body = bodies[with]; c.peer.Body.Read == nil {
				t.Fatalf("%s: no %s", name, with)
			}
		}
		got := c.read(&http.Response{StatusCode: status, Header: headerOf(t, fields), Body: io.NopCloser(strings.NewReader(body))}, now)
		if want, _, _ = strings.Cut(want, ";"); said(&got) != want {
			t.Errorf("%s (%s):\ngot  %s\nwant %s", name, source, said(&got), want)
		}
		read++
	}
	t.Logf("%d answers of %d services are read", read, len(services))
}

// TestKrakenTime wants the Unix time of Kraken's refusal to be when the hold ends.
func TestKrakenTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Answer
		KrakenBody().Read(&a, fmt.Appendf(nil, `{"error": ["EService: Throttled: %d"]}`, time.Now().Unix()+30))
		if want := 30 * time.Second; !a.Refused || a.HoldOff != want {
			t.Errorf("%+v, want a hold of %v", a, want)
		}
	})
}

// FuzzBody wants what any body says to be within the bounds of answers, and the body to stay as
// it is.
func FuzzBody(f *testing.F) {
	f.Add(429, `{"parameters": {"retry_after": 1e300}}`)
	f.Add(200, `{"error": ["EService: Throttled: 99999999999", "EAPI:Rate limit exceeded"]}`)
	f.Add(200, `{"errors": [{"extensions": {"code": "THROTTLED"}}], "extensions": {"cost": {"requestedQueryCost": 1e300, "throttleStatus": {"maximumAvailable": 1e14, "currentlyAvailable": -5, "restoreRate": 1e-300}}}}`)
	f.Add(403, `{"error": {"errors": [{"reason": "quotaExceeded"}], "details": [{"retryDelay": "-5s"}, {"retryDelay": "2540400h"}]}, "message": "secondary rate limit"}`)
	f.Add(503, `<Error><Code>SlowDown</Code>`)
	f.Add(400, `{"__type": "#"}`)
	f.Fuzz(func(t *testing.T, status int, text string) {
		for name, body := range bodies {
			c := &Call{transport: new(Transport), peer: &peer{Peer: Peer{Refusals: refusals, Body: body}}}
			response := &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(text))}
			a := c.read(response, now)
			if a.HoldOff < 0 || a.HoldOff > maxTime || len(a.Quotas) > maxQuotas {
				t.Fatalf("%s: %+v", name, a)
			}
			for _, q := range a.Quotas {
				if q.Limit < -1 || q.Limit >= limitfields.MaxCount || q.Remaining < -1 || q.Remaining > q.Limit || q.Unit == "" || q.Window < 0 || q.Window > maxTime || q.Reset < 0 || q.Reset > maxTime {
					t.Fatalf("%s: %+v", name, q)
				}
			}
			if after, err := io.ReadAll(response.Body); string(after) != text || err != nil {
				t.Fatalf("%s: %q became %q, %v", name, text, after, err)
			}
		}
	})
}
