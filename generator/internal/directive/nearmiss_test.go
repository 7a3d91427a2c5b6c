package directive

import "testing"

// What is meant as a directive is found, and prose about limits stays prose.
func TestNearMiss(t *testing.T) {
	for text, want := range map[string]string{
		" ratelimit:key=#id max=5":                   "key=#id max=5",
		" ratelimit: key=#id":                        "key=#id",
		"RateLimit:key=#id":                          "key=#id",
		"rate_limit:key=#id":                         "key=#id",
		"rate-limit: window=1s max=5":                "window=1s max=5",
		"ratelimit key=#id":                          "key=#id",
		"ratelimit :key=#id":                         "key=#id",
		"ratelmit:key=#id":                           "key=#id",
		"go:ratelimit key=#id":                       "key=#id",
		"@ratelimit max=5":                           "max=5",
		"ratelimiter max=5":                          "max=5",
		"ratelimiter:max=5":                          "max=5",
		" ratelimit: max = 5 window=1s":              "max = 5 window=1s",
		" ratelimit: widnow=1s":                      "widnow=1s",
		` ratelimit: max=5 message="too many calls"`: `max=5 message="too many calls"`,
		" ratelimit:policy name=api max=5":           "policy name=api max=5",
		" ratelimit: off":                            "off",
		` ratelimit:import "strings"`:                `import "strings"`,

		"/ratelimit:key=#id":         "key=#id",
		" - ratelimit:key=#id max=5": "key=#id max=5",
		"rate:limit:max=5":           "max=5",

		" //ratelimit:max=5":                     "",
		" RateLimiter max=5 and so on":           "",
		" RateLimiter max=5":                     "",
		" RateLimiter: max=5 is what it admits":  "",
		" RateLimits max=5 calls":                "",
		" ratelimit: max=5 and so on":            "",
		" ratelimit:max=5 limits all calls":      "",
		" Ratelimit max=5, see the manual":       "",
		" rategen key=#id does this":             "",
		" RateLimit key=value pairs are options": "",
		" ratelimit: off by default":             "",
		" ratelimit is off":                      "",
		" ratelimit: max=(5":                     "",
	} {
		if got := findNearMiss(text); got != want {
			t.Errorf("%q: meant as %q, want %q", text, got, want)
		}
	}
}
