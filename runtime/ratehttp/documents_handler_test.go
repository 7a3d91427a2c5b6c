package ratehttp_test

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/iotest"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// handle does what a handler is to do: take LIMITS, take apart LIMITS in no request and take within LIMITS in one with a
// recorder of its own, each RULE for 20 keys, away LIMITS where there is no store, call RULE of a peer, which is outgoing,
// upstream LEFT RESET, which sets the older fields, answer, which ends it after a refusal, answer on, which does not, beside,
// which answers in another goroutine, deny, deny ERROR, set NAME: VALUE, status N, error N, own N, status of the query, write TEXT,
// copy TEXT, which lets the writer read it, copies what fails at once: a refusal or a failure, claim, refused, which tells
// whether a limit has refused in a field Refused, flush, hijack, hijack past layers, wait TIME, panic, abort, recover, which does
// what follows below a middleware that contains panics, and bare, which does it with a writer of its own.
func (p *site) handle(w http.ResponseWriter, r *http.Request, steps []string) {
	var refused error
	for i, step := range steps {
		verb, rest, _ := strings.Cut(step, " ")
		n, _ := strconv.Atoi(rest)
		switch verb {
		case "":
		case "take":
			ctx := r.Context()
			if text, is := strings.CutPrefix(rest, "apart "); is {
				ctx, rest = context.Background(), text
			} else if text, is := strings.CutPrefix(rest, "within "); is {
				ctx, rest = observe.WithRefusalRecorder(ctx, func(observe.Refusal) {}), text
			}
			if _, err := p.limiter.Take(ctx, p.limits(rest)...); err != nil {
				refused = err
			}
		case "each":
			for i := range 20 {
				_, _ = p.limiter.Take(r.Context(), p.rules[rest].Limit(runtime.NewKey().AddInt(int64(i))))
			}
		case "call":
			_, err := p.peer(rest).RoundTrip(httptest.NewRequestWithContext(r.Context(), http.MethodGet, "http://peer.example/", nil))
			if err != nil {
				refused = err
			}
		case "away":
			away := runtime.New(failing(), runtime.WithLogger(silent))
			_, _ = away.Take(r.Context(), p.limits(rest)...)
			_ = away.Close()
		case "upstream":
			words := append(strings.Fields(rest), "")
			for i, value := range []string{"100", strings.ReplaceAll(words[0], "_", " "), words[1]} {
				w.Header().Set([]string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}[i], value)
			}
		case "held":
			if d, _ := document.Duration(strings.TrimPrefix(rest, "held=")); d > 0 {
				time.Sleep(d)
			}
		case "answer":
			if refused != nil && ratehttp.Error(w, r, refused) && rest != "on" {
				return
			}
		case "deny":
			if rest != "" {
				refused = denied[rest]
			}
			ratehttp.Deny(w, r, refused)
			return
		case "set":
			name, value, _ := strings.Cut(rest, ": ")
			w.Header().Add(name, value)
		case "status":
			if rest == "of the query" {
				n, _ = strconv.Atoi(r.URL.Query().Get("status"))
			}
			if n > 0 {
				w.WriteHeader(n)
			}
		case "error":
			w.Header().Set("Content-Length", "7")
			http.Error(w, "secret", n)
		case "own":
			http.Error(w, "own", n)
		case "beside":
			var done sync.WaitGroup
			done.Go(func() { ratehttp.Error(w, r, refused) })
			done.Wait()
		case "hijack":
			if rest == "past" {
				w = over{bare{w}}
			}
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmine")
				_ = conn.Close()
			}
		case "write":
			n, err := io.WriteString(w, rest)
			limittest.Equal(p, fmt.Sprint("written of ", len(rest), " bytes, ", err), n, len(rest))
		case "copy":
			n, err := io.Copy(w, struct{ io.Reader }{strings.NewReader(rest)})
			limittest.Equal(p, fmt.Sprint("written of ", len(rest), " bytes, ", err), n, int64(len(rest)))
		case "copies":
			_, refused = io.Copy(w, iotest.ErrReader(map[string]error{"refusal": &runtime.LimitedError{Rule: "reads"}, "failure": errSecret}[rest]))
		case "claim":
			ratehttp.Claim(r.Context())
		case "refused":
			w.Header().Set("Refused", strconv.FormatBool(ratehttp.IsRefused(r)))
		case "flush":
			func() {
				defer func() { _ = recover() }()
				_ = http.NewResponseController(w).Flush()
			}()
		case "wait":
			d, err := document.Duration(rest)
			limittest.OK(p, err)
			time.Sleep(d)
		case "panic":
			panic(refused)
		case "abort":
			panic(http.ErrAbortHandler)
		case "recover":
			recovering(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.handle(w, r, steps[i+1:]) })).ServeHTTP(w, r)
			return
		case "bare":
			w = struct{ http.ResponseWriter }{w}
		case "client":
			p.client = ratehttp.ClientIP(r.Context())
		default:
			p.Fatalf("no handler does %q", step)
		}
	}
}

// peer returns a client whose peer has a limit, and answers.
func (p *site) peer(rule string) http.RoundTripper {
	if p.peers[rule] == nil {
		answered := peer(func(*http.Request) int { return http.StatusOK })
		of := rateclient.Peer{Pattern: "/", Limits: []rateclient.PeerLimit{{Rule: *p.rules[rule]}}}
		transport, err := rateclient.New(p.limiter, []rateclient.Peer{of}, rateclient.WithNext(answered))
		limittest.OK(p, err)
		p.peers[rule] = transport
	}
	return p.peers[rule]
}

// A peer answers with a status.
type peer func(*http.Request) int

func (p peer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: p(r), Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// denied are errors, none of them that of a limit of the scenario.
var denied = map[string]error{
	"nothing": nil, "cancelled": context.Canceled, "late": context.DeadlineExceeded, "secret": errSecret,
	"200": statusError(200), "401": statusError(401), "402": statusError(402), "403": statusError(403), "0": statusError(0), "429": statusError(429), "503": statusError(503), "599": statusError(599),
	"unavailable": runtime.ErrUnavailable, "limited": runtime.ErrLimited, "invalid": runtime.ErrInvalidLimit,
}

// checkRatio wants what is left never to be spread over less time than its policy spreads its quota over.
func (p *site) checkRatio(policies, limits []item) {
	for _, policy := range policies {
		for _, limit := range limits {
			q, _ := policy.Params["q"].(int64)
			w, known := policy.Params["w"].(int64)
			r, _ := limit.Params["r"].(int64)
			if t, ends := limit.Params["t"].(int64); policy.Name == limit.Name && known && ends && (r*w > q*t || t < 1 || r < 0 || r > q) {
				p.Errorf("%v, %v", policy, limit)
			}
		}
	}
}

// told tells what the client gets. Secrets and parts of fields that no parser reads are errors.
func (p *site) told(resp *http.Response) string {
	text := strconv.Itoa(resp.StatusCode)
	if resp.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(resp.Body)
		limittest.OK(p, err)
		resp.Body = io.NopCloser(unzipped)
	}
	body := bodyOf(p, resp)
	if strings.Contains(fmt.Sprint(resp.Header, body), "hxqzj") {
		p.Errorf("an answer has what its client has sent: %v %s", resp.Header, body)
	}
	p.checkRatio(parse(p, resp.Header, "RateLimit-Policy"), parse(p, resp.Header, "RateLimit"))
	if retry := resp.Header.Values("Retry-After"); len(retry) > 0 {
		text += ", retry " + strings.Join(retry, " and ")
	}
	var doc map[string]any
	_ = json.Unmarshal([]byte(body), &doc)
	if status := doc["status"]; status != nil && (status != float64(resp.StatusCode) || strings.Contains(body, "secret") ||
		resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("Content-Type") != "application/problem+json") {
		p.Errorf("a refusal is %v %s", resp.Header, body)
	}
	for _, name := range p.shows {
		value := strings.Join(resp.Header.Values(name), " and ")
		switch name {
		case "client":
			value = p.client
		case "detail":
			value, _ = doc["detail"].(string)
		case "body":
			value = strings.TrimSpace(body)
		case "quoted":
			value = strconv.Quote(body)
		case "Grpc-Status-Details-Bin":
			details, err := base64.RawStdEncoding.DecodeString(value)
			limittest.OK(p, err)
			if value != "" {
				value = strconv.Quote(string(details))
			}
		case "size":
			value = strconv.Itoa(len(body))
		case "trailers":
			value = strings.Join(slices.Sorted(maps.Keys(resp.Trailer)), " and ")
		case "document":
			delete(doc, "status")
			if doc != nil {
				sorted, _ := json.Marshal(doc)
				value = strings.ReplaceAll(string(sorted), types, "#")
			}
		}
		if value != "" {
			text += ", " + name + " " + value
		}
	}
	return text
}
