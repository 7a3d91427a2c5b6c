package rateclient

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/rateclient/internal/limitfields"
)

// GoogleBody reads the google.rpc.RetryInfo of Google's APIs, and the reasons by which the older
// ones refuse with 403: rateLimitExceeded, userRateLimitExceeded and quotaExceeded. See
// cloud.google.com/apis/design/errors.
func GoogleBody() Body {
	return jsonBody(func(a *Answer, b *struct {
		Error struct {
			Errors  []struct{ Reason string }
			Details []struct{ RetryDelay string }
		}
	}) {
		for _, d := range b.Error.Details {
			if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
				a.Refused, a.HoldOff = true, max(a.HoldOff, wait)
			}
		}
		for _, e := range b.Error.Errors {
			a.Refused = a.Refused || slices.Contains([]string{"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"}, e.Reason)
		}
	}, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable)
}

// GitHubBody reads that a secondary limit refuses, which holds for a minute if the fields do not
// say for how long. See docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api.
func GitHubBody() Body {
	return jsonBody(func(a *Answer, b *struct{ Message string }) {
		if strings.Contains(b.Message, "secondary rate limit") || strings.Contains(b.Message, "abuse detection") {
			a.Refused = true
			if a.HoldOff == 0 {
				a.HoldOff = time.Minute
			}
		}
	}, http.StatusForbidden, http.StatusTooManyRequests)
}

// TelegramBody reads the retry_after of Telegram's bots. See core.telegram.org/bots/api.
func TelegramBody() Body {
	return jsonBody(func(a *Answer, b *struct {
		Parameters struct {
			RetryAfter float64 `json:"retry_after"`
		}
	}) {
		a.HoldOff = max(a.HoldOff, limitfields.Duration(b.Parameters.RetryAfter, time.Second))
	}, http.StatusTooManyRequests)
}

// KrakenBody reads the refusals of Kraken, which have the status 200. See
// docs.kraken.com/api/docs/guides/spot-rest-ratelimits.
func KrakenBody() Body {
	return jsonBody(func(a *Answer, b *struct{ Error []string }) {
		for _, text := range b.Error {
			at, service := strings.CutPrefix(text, "EService:")
			if at, throttled := strings.CutPrefix(strings.TrimSpace(at), "Throttled:"); service && throttled {
				a.Refused = true
				if unix, ok := limitfields.Number(at); ok && unix < 1e11 {
					a.HoldOff = max(a.HoldOff, time.Until(time.Unix(int64(unix), 0)))
				}
			}
			a.Refused = a.Refused || strings.HasSuffix(text, ":Rate limit exceeded")
		}
	}, http.StatusOK)
}

// ShopifyBody reads the cost and the throttle status of Shopify's GraphQL API, which refuses
// with the status 200. The unit of its quota is "points". See shopify.dev/docs/api/usage/limits.
func ShopifyBody() Body {
	return jsonBody(func(a *Answer, b *struct {
		Errors     []struct{ Extensions struct{ Code string } }
		Extensions struct {
			Cost struct {
				RequestedQueryCost float64
				ThrottleStatus     struct{ MaximumAvailable, CurrentlyAvailable, RestoreRate float64 }
			}
		}
	}) {
		cost := &b.Extensions.Cost
		has := &cost.ThrottleStatus
		if has.MaximumAvailable > 0 && has.MaximumAvailable < limitfields.MaxCount && has.RestoreRate > 0 {
			left := max(0, min(has.CurrentlyAvailable, has.MaximumAvailable))
			a.Quotas = append(a.Quotas, Quota{Unit: "points", Limit: int64(has.MaximumAvailable), Remaining: int64(left), gradual: true,
				Window: limitfields.Duration(has.MaximumAvailable/has.RestoreRate, time.Second), Reset: limitfields.Duration((has.MaximumAvailable-left)/has.RestoreRate, time.Second)})
		}
		for _, e := range b.Errors {
			if e.Extensions.Code == "THROTTLED" {
				a.Refused = true
				if has.RestoreRate > 0 {
					a.HoldOff = max(a.HoldOff, limitfields.Duration((cost.RequestedQueryCost-has.CurrentlyAvailable)/has.RestoreRate, time.Second))
				}
			}
		}
	}, http.StatusOK)
}

// AWSBody reads the codes by which services of AWS throttle, with the status 400 or 503, in the
// JSON or XML of an error. They do not say for how long: see [Peer.Unsaid]. The codes are those
// of docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html.
func AWSBody() Body {
	codes := []string{"Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "RequestThrottled",
		"TooManyRequestsException", "ProvisionedThroughputExceededException", "RequestLimitExceeded", "BandwidthLimitExceeded",
		"LimitExceededException", "SlowDown", "EC2ThrottledException", "PriorRequestNotComplete"}
	return Body{Statuses: []int{http.StatusBadRequest, http.StatusServiceUnavailable}, Read: func(a *Answer, body []byte) {
		var b struct {
			Type string `json:"__type"`
			Code string `json:"code"`
		}
		if json.Unmarshal(body, &b) != nil {
			_, rest, _ := strings.Cut(string(body), "<Code>")
			b.Code, _, _ = strings.Cut(rest, "</Code>")
		}
		for _, code := range []string{b.Type, b.Code} {
			a.Refused = a.Refused || slices.Contains(codes, code[strings.LastIndexByte(code, '#')+1:])
		}
	}}
}

// jsonBody returns a Body that reads JSON. What is malformed says nothing.
func jsonBody[T any](read func(a *Answer, b *T), statuses ...int) Body {
	return Body{Statuses: statuses, Read: func(a *Answer, body []byte) {
		var b T
		if json.Unmarshal(body, &b) == nil {
			read(a, &b)
		}
	}}
}
