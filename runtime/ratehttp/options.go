package ratehttp

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/ratefield"
)

// An Option configures a [Middleware].
type Option interface{ apply(*config) }

type option func(*config)

func (o option) apply(c *config) { o(c) }

// A ClientOption says how clients are found and which are served. It configures a
// [Middleware] and, by raterpc.WithClients, the interceptors of gRPC and Connect.
type ClientOption func(*clients)

func (o ClientOption) apply(c *config) { o(&c.clients) }

// A config is what a middleware does. It does not change once it is in use.
type config struct {
	clients
	policies *ratefield.Policies
	holds    ratefield.Holds
	declared map[string]ratefield.Policy
	answer   func(http.ResponseWriter, *http.Request, Answer)
	messages ratefield.Messages
	silent   bool // no fields
	draft    ratefield.Draft
	legacy   bool
	cors     bool
	rate     int64 // 0: no bound
	jitter   int64 // in seconds

	overruling ratefield.Overruling

	secret    []byte
	partition func(r *http.Request, rule string) string
}

// clients say how clients are found.
type clients struct {
	checks   *checks
	trusted  []netip.Prefix
	hops     int
	header   string // that the trusted proxies write
	unix     bool
	bits     int // 0: the default
	networks *Networks
}

// defaultIPv6 is how many bits of an IPv6 address tell clients apart: providers
// commonly give a home a /56, RFC 6177, and a client can use all of it.
const defaultIPv6 = 56

func newConfig[O Option](opts []O) *config {
	c := &config{clients: clients{checks: newChecks()}, declared: map[string]ratefield.Policy{}}
	for _, opt := range opts {
		opt.apply(c)
	}
	c.policies = ratefield.NewPolicies(c.declared, c.checks.lines.Loggers[0])
	return c
}

// standard is the config of requests that have passed no middleware.
var standard = newConfig[Option](nil)

// WithPolicy sets what clients are told about the rule of this name, or about all rules
// whose names begin like it if it ends in "*"; the longest that fits counts. It panics if
// the policy is malformed, see [ratefield.Policy.Check].
func WithPolicy(rule string, p ratefield.Policy) Option {
	if err := p.Check(rule); err != nil {
		panic("ratehttp: " + err.Error())
	}
	return option(func(c *config) { c.declared[rule] = p })
}

// WithoutFields keeps RateLimit-Policy and RateLimit out of the answers. A refused
// request still gets its status, Retry-After and body.
func WithoutFields() Option { return option(func(c *config) { c.silent = true }) }

// WithDraft says by which version of the draft RateLimit is written. The default is
// [ratefield.Draft11]. It panics if the version is unknown.
func WithDraft(draft ratefield.Draft) Option {
	if draft > ratefield.DraftProposed {
		panic(fmt.Sprintf("ratehttp: the draft %d of WithDraft is unknown", draft))
	}
	return option(func(c *config) { c.draft = draft })
}

// WithLegacyFields adds X-RateLimit-Limit, X-RateLimit-Remaining and
// X-RateLimit-Reset for the limit that is closest to its end. The last one is the
// time when the limit is whole again, in seconds since 1970. Those of a server behind this
// one stay if it is stricter, or has refused the request itself.
func WithLegacyFields() Option { return option(func(c *config) { c.legacy = true }) }

// WithMaxRate bounds what RateLimit lets a client expect: r is never more than n for
// each second of t. The default is the rule's own rate. It panics unless n is
// positive.
func WithMaxRate(n int) Option {
	if n <= 0 {
		panic("ratehttp: the rate of WithMaxRate must be positive")
	}
	return option(func(c *config) { c.rate = int64(n) })
}

// WithJitter adds up to d, in whole seconds, to t and to Retry-After, so that clients
// that were refused together do not come back together. The default is none: t and
// Retry-After then name the earliest time at which a call can be admitted. It panics if d is
// negative, or is above 0 and below a second.
func WithJitter(d time.Duration) Option {
	if d < 0 || d > 0 && d < time.Second {
		panic(fmt.Sprintf("ratehttp: WithJitter(%v): the fields count in seconds, so jitter is at least one", d))
	}
	return option(func(c *config) { c.jitter = int64(d / time.Second) })
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
	return option(func(c *config) { c.secret, c.partition = secret, value })
}

// WithAnswer replaces the body of the answer to a refused request, for clients that
// speak neither gRPC nor Connect. Retry-After and Cache-Control are in the header
// when answer is called. It writes the status, which a.Status suggests, and a body. If
// it writes nothing the client gets the answer that it would get without answer.
func WithAnswer(answer func(w http.ResponseWriter, r *http.Request, a Answer)) Option {
	return option(func(c *config) { c.answer = answer })
}

// WithLogger sets where mistakes in the use of this package are reported, each once.
// The default is [slog.Default] as it is at the time of the line.
func WithLogger(logger *slog.Logger) ClientOption {
	return func(c *clients) { c.checks.lines.Loggers[0] = logger }
}

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
func WithTrustedProxies(header string, proxies ...netip.Prefix) ClientOption {
	header = proxyHeader(header)
	trusted := make([]netip.Prefix, len(proxies))
	for i, p := range proxies {
		p = canonicalPrefix(p)
		if !p.IsValid() || p.Bits() == 0 {
			panic(fmt.Sprintf("ratehttp: %v is no set of trusted proxies", p))
		}
		trusted[i] = p
	}
	return func(c *clients) { c.header, c.trusted = header, trusted }
}

// WithTrustedHops makes [ClientIP] trust the last n proxies whatever their addresses
// are, of which the peer is the last, and what they write into one header. It is for load
// balancers whose addresses nobody knows. Every request must come through all of them:
// who reaches the server by another way chooses an address. Beside [WithTrustedProxies] a
// proxy is trusted if either has it; the header must be the same. It panics unless n is
// positive.
func WithTrustedHops(header string, n int) ClientOption {
	header = proxyHeader(header)
	if n <= 0 {
		panic("ratehttp: the number of hops of WithTrustedHops must be positive")
	}
	return func(c *clients) { c.header, c.hops = header, n }
}

// proxyHeader returns the name of a header in which proxies name their clients, and
// panics if it is none.
func proxyHeader(header string) string {
	if header = http.CanonicalHeaderKey(header); header != XForwardedFor && header != Forwarded {
		panic(fmt.Sprintf("ratehttp: proxies are trusted for %s or %s, not for %q", XForwardedFor, Forwarded, header))
	}
	return header
}

// WithTrustedUnixSocket makes [ClientIP] trust peers without an address, which is how
// a proxy on the same machine appears that connects over a Unix socket. The header is
// that of [WithTrustedProxies], or [XForwardedFor] without that.
func WithTrustedUnixSocket() ClientOption { return func(c *clients) { c.unix = true } }

// WithNetworks names clients for which no limit holds, and clients that are not served,
// by the address that [ClientIP] finds. The networks may change while the server runs.
func WithNetworks(n *Networks) ClientOption { return func(c *clients) { c.networks = n } }

// WithForcedRefusals answers a request that a limit has refused with 429 or 503 whatever error its handler
// answers. By default that is so for 500 and for no answer, and another status is the program's own
// choice. An answer that has begun stays, and so do 429, 503 and what is no error. The limiter reports a
// refusal that its client is not told of by a WARN for each route, and by [observe.Observer].
//
// An error that has another reason than the refusal is overruled as well, of a handler
// that goes on after a refusal. Its clients are told to come back, at the worst.
func WithForcedRefusals() Option {
	return option(func(c *config) { c.overruling = ratefield.OverruleErrors })
}

// WithHiddenRefusals leaves every answer as its handler has written it, and reports those that hide a
// refusal, as [WithForcedRefusals] says.
func WithHiddenRefusals() Option {
	return option(func(c *config) { c.overruling = ratefield.OverruleNothing })
}

// WithCORS is for servers that scripts of other origins call. The fields and
// Retry-After are exposed to them, by Access-Control-Expose-Headers. A preflight passes
// each [RequestLimit] without a charge, so the handlers below must not act on OPTIONS. All else
// is left to CORS middleware, which should stand outside of every Limit: a warning says
// when a refusal has no Access-Control-Allow-Origin, so that a script sees none.
func WithCORS() Option { return option(func(c *config) { c.cors = true }) }

// WithMessages answers refusals in the language that the client prefers by its header
// Accept-Language. Where it has no text, the rule's message stays.
func WithMessages(messages ratefield.Messages) Option {
	return option(func(c *config) { c.messages = messages })
}

// WithIPv6Prefix sets how many bits of an IPv6 address tell clients apart, from 1 to
// 128. The default is 56, and 128 for local networks. It panics if bits is out of bounds.
func WithIPv6Prefix(bits int) ClientOption {
	if bits < 1 || bits > 128 {
		panic("ratehttp: the bits of WithIPv6Prefix must be from 1 to 128")
	}
	return func(c *clients) { c.bits = bits }
}
