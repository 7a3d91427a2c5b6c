package ratehttp_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// A minute is refused for a minute, with a message that no header can hold.
var minute = &runtime.Rule{Name: "minute", Window: time.Minute, Max: 1, Message: "100% 茶\n"}

// refused has a request of a content type refused: by a limit, or for lack of a store.
func refused(t *testing.T, unavailable bool, change func(*http.Request)) *http.Response {
	limiter := newLimiter()
	if unavailable {
		limiter = runtime.New(failing(), runtime.WithLogger(silent), runtime.WithFailurePolicy(runtime.FailClosed))
	}
	h := ratehttp.RequestLimit{Limiter: limiter, Rule: minute}.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	answerOf(h)
	return answerOf(h, change)
}

func contentType(value string) func(*http.Request) {
	return func(r *http.Request) { r.Method = http.MethodPost; r.Header.Set("Content-Type", value) }
}

// gRPC clients get a status in the header of an answer without a body.
func TestGRPC(t *testing.T) {
	for sent, want := range map[string]string{
		"application/grpc":                     "application/grpc",
		"application/grpc+proto":               "application/grpc+proto",
		"application/grpc+json; charset=utf-8": "application/grpc+json",
		"Application/gRPC":                     "application/grpc",
		"application/grpc+acme\"codec":         "application/grpc", // not repeated
		"application/grpc-web":                 "application/grpc-web",
		"application/grpc-web+proto":           "application/grpc-web+proto",
		"application/grpc-web-text+proto":      "application/grpc-web-text+proto",
	} {
		resp := refused(t, false, contentType(sent))
		h := resp.Header
		if resp.StatusCode != 200 || h.Get("Content-Type") != want || h.Get("Grpc-Status") != "8" ||
			h.Get("Grpc-Message") != "100%25 %E8%8C%B6%0A" || bodyOf(t, resp) != "" {
			t.Errorf("%s: %d %v", sent, resp.StatusCode, h)
		}
		details, err := base64.RawStdEncoding.DecodeString(h.Get("Grpc-Status-Details-Bin"))
		if err != nil {
			t.Fatal(err)
		}
		status := fieldsOf(t, details)
		detail := fieldsOf(t, status[3].([]byte))
		duration := fieldsOf(t, fieldsOf(t, detail[2].([]byte))[1].([]byte))
		if status[1] != uint64(8) || string(status[2].([]byte)) != minute.Message ||
			string(detail[1].([]byte)) != "type.googleapis.com/google.rpc.RetryInfo" || duration[1] != uint64(60) {
			t.Errorf("%s: %v", sent, status)
		}
		if len(parse(t, h, "RateLimit")) != 1 {
			t.Errorf("%s: no field", sent)
		}
		h = refused(t, true, contentType(sent)).Header
		if h.Get("Grpc-Status") != "14" || h.Get("Grpc-Status-Details-Bin") != "" || h.Get("Grpc-Message") == "" {
			t.Errorf("%s: %v", sent, h)
		}
	}
}

// fieldsOf reads the fields of a protocol buffer by their numbers.
func fieldsOf(t *testing.T, message []byte) map[uint64]any {
	t.Helper()
	fields := map[uint64]any{}
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		value, m := binary.Uvarint(message[max(0, n):])
		if n <= 0 || m <= 0 {
			t.Fatalf("%x", message)
		}
		message = message[n+m:]
		fields[tag>>3] = value
		if tag&7 == 2 {
			fields[tag>>3], message = message[:value], message[value:]
		}
	}
	return fields
}

type connectError struct {
	Code, Message string
	Details       []struct{ Type, Value string }
}

func (e *connectError) check(t *testing.T, unavailable bool) {
	t.Helper()
	if unavailable {
		if e.Code != "unavailable" || len(e.Details) > 0 || e.Message == "" {
			t.Errorf("%+v", e)
		}
		return
	}
	if e.Code != "resource_exhausted" || e.Message != minute.Message || len(e.Details) != 1 || e.Details[0].Type != "google.rpc.RetryInfo" {
		t.Errorf("%+v", e)
	}
}

// Connect clients get an error in JSON, for calls in the status and for streams in
// their last message.
func TestConnect(t *testing.T) {
	unary := map[string]func(*http.Request){
		"proto": func(r *http.Request) {
			contentType("application/proto")(r)
			r.Header.Set("Connect-Protocol-Version", "1")
		},
		"json": func(r *http.Request) {
			contentType("application/json")(r)
			r.Header.Set("Connect-Protocol-Version", "1")
		},
		"GET": func(r *http.Request) { r.URL = &url.URL{Path: "/", RawQuery: "encoding=json&connect=v1"} },
	}
	for _, unavailable := range []bool{false, true} {
		for name, change := range unary {
			resp := refused(t, unavailable, change)
			var got connectError
			if err := json.Unmarshal([]byte(bodyOf(t, resp)), &got); err != nil || resp.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %v %v", name, err, resp.Header)
			}
			got.check(t, unavailable)
			if want := map[bool]int{false: 429, true: 503}[unavailable]; resp.StatusCode != want {
				t.Errorf("%s: %d, not %d", name, resp.StatusCode, want)
			}
		}
		for _, codec := range []string{"proto", "json"} {
			resp := refused(t, unavailable, contentType("application/connect+"+codec))
			body := bodyOf(t, resp)
			if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/connect+"+codec || len(body) < 5 ||
				body[0] != 2 || int(binary.BigEndian.Uint32([]byte(body[1:5]))) != len(body)-5 {
				t.Fatalf("%d %v %q", resp.StatusCode, resp.Header, body)
			}
			var end struct{ Error connectError }
			if err := json.Unmarshal([]byte(body[5:]), &end); err != nil {
				t.Error(err)
			}
			end.Error.check(t, unavailable)
		}
	}
	// A plain request that looks a little like one.
	for _, query := range []string{"connect=v2", "xconnect=v1", "connect=v1x", "%zz&connect=v1;"} {
		resp := refused(t, false, func(r *http.Request) { r.URL = &url.URL{Path: "/", RawQuery: query} })
		limittest.Equal(t, query, resp.Header.Get("Content-Type"), "application/problem+json")
	}
}

// No answer repeats what a client has sent.
func TestNothingIsEchoed(t *testing.T) {
	const mark = "hxqzj"
	limiter := newLimiter()
	chain := ratehttp.Middleware(ratehttp.WithLegacyFields(), proxies(ratehttp.XForwardedFor),
		ratehttp.WithPartitionKey([]byte("secret"), func(r *http.Request, _ string) string { return r.Header.Get("X-Api-Key") }),
	)(ratehttp.RequestLimit{Limiter: limiter, Rule: minute, Key: func(r *http.Request) string { return "all" }}.Wrap(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	answerOf(chain)
	for _, media := range []string{mark, "application/grpc+" + mark, "application/grpc;" + mark, "application/connect+" + mark, "application/json;" + mark} {
		resp := answerOf(chain, func(r *http.Request) {
			r.RemoteAddr = proxy
			r.Method = http.MethodPost
			for _, name := range []string{"Accept", "X-Forwarded-For", "Forwarded", "X-Api-Key", "Origin", "Cookie", "Connect-Protocol-Version", "User-Agent"} {
				r.Header.Set(name, mark)
			}
			r.Header.Set("Content-Type", media)
		})
		var whole strings.Builder
		if err := resp.Write(&whole); err != nil || strings.Contains(whole.String(), mark) || resp.StatusCode == 0 {
			t.Errorf("%s: %v\n%s", media, err, whole.String())
		}
	}
}
