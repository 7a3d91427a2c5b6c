package raterpc

import (
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// An Option configures the interceptors of a server.
type Option func(*Server)

// WithPolicy sets what clients are told about the rule of this name, or about all rules
// whose names begin like it if it ends in "*"; the longest that fits counts. It panics if
// the policy is malformed, see [ratefield.Policy.Check].
//
// Without it the public name is that of [ratefield.PublicName]: EmployeeService.GetByID,
// without the package.
func WithPolicy(rule string, p ratefield.Policy) Option {
	if err := p.Check(rule); err != nil {
		panic("raterpc.WithPolicy: " + err.Error())
	}
	return func(s *Server) { s.declared[rule] = p }
}

// WithClients says how [ratehttp.ClientIP] finds the clients of calls, and which are not
// served: ratehttp's [ratehttp.WithTrustedProxies], [ratehttp.WithTrustedHops],
// [ratehttp.WithIPv6Prefix] and [ratehttp.WithNetworks]. Without it the client is the
// peer of the connection.
func WithClients(opts ...ratehttp.ClientOption) Option {
	clients := ratehttp.NewClients(opts...)
	return func(s *Server) { s.clients = clients }
}

// WithMessages answers refusals in the language that the client prefers by its metadata
// accept-language. Where it has no text, the rule's message stays.
func WithMessages(messages ratefield.Messages) Option {
	return func(s *Server) { s.messages = messages }
}

// WithForcedRefusals ends a call that a limit has refused with RESOURCE_EXHAUSTED or UNAVAILABLE whatever
// error its handler ends it with. By default that is so for UNKNOWN and INTERNAL, and another code is the
// program's own choice. These two codes stay, and so does success. The limiter reports a refusal that its
// client is not told of by a WARN for each method, and by [observe.Observer.Hidden].
//
// An error that has another reason than the refusal is overruled as well, of a handler
// that goes on after a refusal.
func WithForcedRefusals() Option {
	return func(s *Server) { s.overruling = ratefield.OverruleErrors }
}

// WithHiddenRefusals leaves every error as its handler has returned it, and reports those that hide a
// refusal, as [WithForcedRefusals] says.
func WithHiddenRefusals() Option {
	return func(s *Server) { s.overruling = ratefield.OverruleNothing }
}

// WithDomain sets the domain of ErrorInfo details, by which clients know whose
// reason they read: "api.example.com". The default is the name of the service that
// was called, as in its .proto file.
func WithDomain(domain string) Option {
	return func(s *Server) { s.domain = strings.ToValidUTF8(domain, "\uFFFD") }
}

// WithPushback tells clients with a retry policy when to retry, by
// grpc-retry-pushback-ms in the trailers of a refusal. Clients wait as long as they
// are told, up to a quarter longer than the call's RetryAfter, so that they do not
// come back all at once. They are told not to retry where waiting is of no use: if
// the call can never be admitted, if the wait would be longer than max, and if the
// call's deadline is sooner.
//
// Without this option a client with a retry policy for RESOURCE_EXHAUSTED retries
// by its own backoff. A Connect server cannot say it: its clients never retry, see
// package rateconnect.
func WithPushback(max time.Duration) Option {
	return func(s *Server) { s.pushback = max }
}

// WithDraft says by which version of the draft the field ratelimit is written. The default
// is [ratefield.Draft11].
func WithDraft(draft ratefield.Draft) Option {
	return func(s *Server) { s.draft = draft }
}

// WithoutFields leaves the fields ratelimit and ratelimit-policy out of the
// metadata of every answer.
func WithoutFields() Option {
	return func(s *Server) { s.silent = true }
}

// WithLimits applies limits to methods by their names, with no directive. Of the
// limits that one WithLimits has for a call, all are charged or none. The option may
// be given several times; they then decide in their order, and the first refusal
// counts. It panics if the limiter is nil, a limit is malformed, see [MethodLimit], or is for a
// method that its service has not. One for a service that is spelt like another is a finding.
func WithLimits(limiter *runtime.Limiter, limits ...MethodLimit) Option {
	if limiter == nil {
		panic("raterpc.WithLimits: the limiter is nil, so nothing would be limited")
	}
	for i := range limits {
		limits[i].check()
	}
	checkCount(limits)
	for _, l := range limits {
		limiter.Register(l.Rule)
	}
	limits = slices.Clone(limits)
	return func(s *Server) { s.limited = append(s.limited, limited{limiter, limits}) }
}
