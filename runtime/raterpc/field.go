package raterpc

import (
	"math/bits"
	"strconv"
	"time"

	"github.com/rategen/rategen/runtime"
)

// Names of the fields of [Call.Fields], as gRPC metadata spells them.
const (
	FieldLimit  = "ratelimit"
	FieldPolicy = "ratelimit-policy"
)

// Fields returns the values of the fields [FieldLimit] and [FieldPolicy] as of now,
// as draft-ietf-httpapi-ratelimit-headers-11 defines them. They list every rule that
// the call has met, except rules in shadow mode, those without a public name, and the
// cap of a process, which is no quota of a client's. A value is "" if there is nothing
// to say.
func (c *Call) Fields() (limit, policy string) {
	if c.server.hidden {
		return "", ""
	}
	var limits, policies []byte
	for _, e := range c.seen.all() {
		name := c.server.public(e.Rule)
		if name == "" || e.Source == runtime.SourceProcess {
			continue
		}
		policies = appendPolicy(appendComma(policies), name, &e)
		if known(&e) {
			limits = appendLimit(appendComma(limits), name, &e)
		}
	}
	return string(limits), string(policies)
}

// appendComma appends what separates the members of a List, unless dst is empty.
func appendComma(dst []byte) []byte {
	if len(dst) == 0 {
		return dst
	}
	return append(dst, ", "...)
}

// known reports whether the event tells what is left of the limit: whether it was
// counted, and not assumed.
func known(e *runtime.DecisionEvent) bool {
	return e.Source != runtime.SourceNone && e.Source != runtime.SourceFailure && e.Verdict != runtime.Unavailable && e.RetryAfter != runtime.Never
}

// maxInteger is the largest Integer of a structured field, RFC 9651 section 3.3.1.
const maxInteger = 999_999_999_999_999

// appendPolicy appends a member of the field ratelimit-policy: the quota q, and the
// window w if it is whole seconds. The quota of a bucket is its burst, which is
// admitted again in the time that the bucket needs to fill.
func appendPolicy(dst []byte, name string, e *runtime.DecisionEvent) []byte {
	dst = append(appendString(dst, name), ";q="...)
	dst = appendInteger(dst, e.Limit)
	if w := timeFor(e, e.Limit); w >= time.Second && w%time.Second == 0 {
		dst = append(dst, ";w="...)
		dst = appendInteger(dst, int64(w/time.Second))
	}
	return dst
}

// appendLimit appends a member of the field ratelimit: what remains, r, and the
// seconds t during which no more than that can be used.
func appendLimit(dst []byte, name string, e *runtime.DecisionEvent) []byte {
	dst = append(appendString(dst, name), ";r="...)
	dst = appendInteger(dst, e.Remaining)
	dst = append(dst, ";t="...)
	return appendInteger(dst, seconds(effective(e)))
}

// effective returns the effective window: until RetryAfter if the limit denies.
// Otherwise the time in which what remains is admitted, so that a client that spends r
// in t is no faster than the policy, or the rest of a fixed window if that is longer.
func effective(e *runtime.DecisionEvent) time.Duration {
	switch {
	case e.RetryAfter > 0:
		return e.RetryAfter
	case e.Algorithm == runtime.FixedWindow:
		return max(e.ResetAfter, timeFor(e, e.Remaining))
	}
	return timeFor(e, e.Remaining)
}

// timeFor returns the time in which n is admitted at the rate of a rule, rounded up.
func timeFor(e *runtime.DecisionEvent, n int64) time.Duration {
	switch {
	case n == e.Max:
		return e.Window
	case n <= 0 || e.Max <= 0:
		return 0
	}
	high, low := bits.Mul64(uint64(n), uint64(e.Window))
	if high >= uint64(e.Max) {
		return runtime.Never
	}
	d, rest := bits.Div64(high, low, uint64(e.Max))
	if rest > 0 {
		d++
	}
	return time.Duration(min(d, uint64(runtime.Never)))
}

// seconds rounds up, to at least one.
func seconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second != 0 {
		whole++
	}
	return max(whole, 1)
}

// appendString appends a String of printable ASCII, RFC 9651 section 4.1.6.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}

func appendInteger(dst []byte, n int64) []byte {
	return strconv.AppendInt(dst, min(max(n, 0), maxInteger), 10)
}
