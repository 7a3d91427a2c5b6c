package ratehttp

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// An Option configures a [Middleware].
type Option func(*config)

// A config is what a middleware does. It does not change once it is in use.
type config struct {
	checks   *checks
	policies *policies
	declared map[string]Policy
	answer   func(http.ResponseWriter, *http.Request, Answer)
	silent   bool // no fields
	legacy   bool
	rate     int64 // 0: no bound
	jitter   int64 // in seconds

	secret    []byte
	partition func(r *http.Request, rule string) string

	trusted []netip.Prefix
	header  string // that the trusted proxies write
	unix    bool
	bits    int
}

// defaultIPv6 is how many bits of an IPv6 address tell clients apart: providers
// commonly give a home a /56, RFC 6177, and a client can use all of it.
const defaultIPv6 = 56

func newConfig(opts []Option) *config {
	c := &config{checks: new(checks), declared: map[string]Policy{}, bits: defaultIPv6}
	for _, opt := range opts {
		opt(c)
	}
	c.policies = newPolicies(c.declared, c.checks)
	return c
}

// standard is the config of requests that have passed no middleware.
var standard = newConfig(nil)

// WithPolicy sets what clients are told about the rule of this name. It panics if
// the policy's Unit is none that the draft registers.
func WithPolicy(rule string, p Policy) Option {
	switch p.Unit {
	case "requests":
		p.Unit = "" // the default need not be written
	case "", "content-bytes", "concurrent-requests":
	default:
		panic(fmt.Sprintf("ratehttp: the unit %q of rule %q is not requests, content-bytes or concurrent-requests", p.Unit, rule))
	}
	return func(c *config) { c.declared[rule] = p }
}

// WithoutFields keeps RateLimit-Policy and RateLimit out of the answers. A refused
// request still gets its status, Retry-After and body.
func WithoutFields() Option { return func(c *config) { c.silent = true } }

// WithLegacyFields adds X-RateLimit-Limit, X-RateLimit-Remaining and
// X-RateLimit-Reset for the limit that is closest to its end. The last one is the
// time when the limit is whole again, in seconds since 1970.
func WithLegacyFields() Option { return func(c *config) { c.legacy = true } }

// WithMaxRate bounds what RateLimit lets a client expect: r is never more than n for
// each second of t. The default is the rule's own rate. It panics unless n is
// positive.
func WithMaxRate(n int) Option {
	if n <= 0 {
		panic("ratehttp: the rate of WithMaxRate must be positive")
	}
	return func(c *config) { c.rate = int64(n) }
}

// WithJitter adds up to d, in whole seconds, to t and to Retry-After, so that clients
// that were refused together do not come back together. The default is none: t and
// Retry-After then name the earliest time at which a call can be admitted.
func WithJitter(d time.Duration) Option {
	return func(c *config) { c.jitter = max(0, int64(d/time.Second)) }
}

// WithPartitionKey adds the draft's parameter pk: the first 12 bytes of the
// HMAC-SHA256 of what value returns. Clients of several users or resources tell by
// it which answers belong together, and nobody can read the value out of it. value
// gets the request and the name of the rule, and returns what the rule counts by. An
// empty value gives no pk, and so does a panic, which is logged once. The secret
// must be the same in all replicas; an empty one panics.
func WithPartitionKey(secret []byte, value func(r *http.Request, rule string) string) Option {
	if len(secret) == 0 || value == nil {
		panic("ratehttp: WithPartitionKey needs a secret and a function")
	}
	secret = slices.Clone(secret)
	return func(c *config) { c.secret, c.partition = secret, value }
}

// WithAnswer replaces the body of the answer to a refused request, for clients that
// speak neither gRPC nor Connect. Retry-After and Cache-Control are in the header
// when answer is called. It writes the status, which a.Status suggests, and a body. If
// it writes nothing the client gets the answer that it would get without answer.
func WithAnswer(answer func(w http.ResponseWriter, r *http.Request, a Answer)) Option {
	return func(c *config) { c.answer = answer }
}

// WithLogger sets where mistakes in the use of this package are reported, each once.
// The default is [slog.Default] as it is at the time of the line.
func WithLogger(logger *slog.Logger) Option { return func(c *config) { c.checks.logger = logger } }

// The headers in which proxies name the client that they act for.
const (
	// XForwardedFor is a list of addresses.
	XForwardedFor = "X-Forwarded-For"
	// Forwarded is defined by RFC 7239. Its parameter "for" is read.
	Forwarded = "Forwarded"
)

// WithTrustedProxies makes [ClientIP] believe what the proxies with these addresses
// write into one header, [XForwardedFor] or [Forwarded]. Your proxies must write
// that header; what other peers write, and other headers, have no effect. The default
// trusts nobody. It panics if the header is another one, and for a prefix that is
// invalid or has every address in it: then each client could choose its own.
func WithTrustedProxies(header string, proxies ...netip.Prefix) Option {
	if header = http.CanonicalHeaderKey(header); header != XForwardedFor && header != Forwarded {
		panic(fmt.Sprintf("ratehttp: proxies are trusted for %s or %s, not for %q", XForwardedFor, Forwarded, header))
	}
	trusted := make([]netip.Prefix, len(proxies))
	for i, p := range proxies {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if !p.IsValid() || p.Bits() == 0 {
			panic(fmt.Sprintf("ratehttp: %v is no set of trusted proxies", p))
		}
		trusted[i] = p.Masked()
	}
	return func(c *config) { c.header, c.trusted = header, trusted }
}

// WithTrustedUnixSocket makes [ClientIP] trust peers without an address, which is how
// a proxy on the same machine appears that connects over a Unix socket. The header is
// that of [WithTrustedProxies], or [XForwardedFor] without that.
func WithTrustedUnixSocket() Option { return func(c *config) { c.unix = true } }

// WithIPv6Prefix sets how many bits of an IPv6 address tell clients apart, from 1 to
// 128. The default is 56. It panics if bits is out of bounds.
func WithIPv6Prefix(bits int) Option {
	if bits < 1 || bits > 128 {
		panic("ratehttp: the bits of WithIPv6Prefix must be from 1 to 128")
	}
	return func(c *config) { c.bits = bits }
}
