package directive

import (
	"strings"
	"testing"
	"time"
)

func TestWindow(t *testing.T) {
	parse := optionNamed("window").constant.parse
	for text, want := range map[string]time.Duration{
		"1ms": time.Millisecond, "60s": time.Minute, "1h30m": 90 * time.Minute, "1.5s": 1500 * time.Millisecond,
		"7d": 7 * 24 * time.Hour, "366d": 366 * 24 * time.Hour,
	} {
		if got, err := parse(Value{Text: text}); got != want || err != nil {
			t.Errorf("window=%s is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "5", "1us", "367d", "-1d", "1d12h", "99999999999d", "1e3s", "#d"} {
		if got, err := parse(Value{Text: text}); err == nil {
			t.Errorf("window=%s is %v, want an error", text, got)
		}
	}
}

func TestSuggest(t *testing.T) {
	names := optionNames
	for written, want := range map[string]string{
		"widnow": "window", "Key": "key", "maximum": "", "mesage": "message", "foo": "", "limit": "",
	} {
		hint := ""
		if want != "" {
			hint = ` (did you mean "` + want + `"?)`
		}
		if got := Suggest(written, names); got != hint {
			t.Errorf("suggest(%q) = %q, want %q", written, got, hint)
		}
	}
}

// An option is found by what other limiters call it, and each word leads to one.
func TestLikelyOption(t *testing.T) {
	for written, want := range map[string]string{
		"limit": "max", "Limit": "max", "requests": "max", "per": "window", "interval": "window", "keys": "key", "widnow": "window",
		"on_failure": "fail", "timeout": "wait", "tokens": "cost", "exclude": "except", "msg": "message", "frobnicate": "",
	} {
		if got := likelyOption(written); got != want {
			t.Errorf("%q probably means %q, want %q", written, got, want)
		}
	}
	meant := map[string]string{}
	for _, o := range Options {
		for word := range strings.FieldsSeq(o.guesses + " " + o.Name) {
			if before := meant[word]; before != "" {
				t.Errorf("%q means %s and %s", word, before, o.Name)
			}
			meant[word] = o.Name
		}
	}
}

func TestMayMention(t *testing.T) {
	for text, want := range map[string]bool{
		"//ratelimit:max=5": true, "x RATE_LIMIT": true, "RateLimit": true, "rate-limit": true, "rateLimit": true,
		"imit": false, "limit": false, "rate limit": false, "-limit": false, "ate_limit": false, "moderatelimits": true,
		"//ratelmit:key=1": true, "// go:raetlimit max=5\n": true, "//": false, "// x = y": false, "a //b\n//c:key\n=1": false,
		"/// ratelmit: key=1": false, "//ratelmit\n//key=1": false, "http://host/generate?key=1": false, "//rategen:prefix=x": true,
	} {
		if got := MayHold([]byte(text)); got != want {
			t.Errorf("mayMention(%q) = %v", text, got)
		}
	}
}
