package raterpc

import (
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
)

// An Option configures the interceptors of a server.
type Option func(*Server)

// WithPolicyName sets the names by which clients know limits: in error details and
// in the ratelimit fields. Name receives a rule's name, which may tell how the
// program is made, and returns the public one. If it returns "" clients do not see
// the limit: it is in no field, and a refusal by it names no policy.
//
// Without this option the public name is the rule's without the part up to the first
// dot, which is the package: EmployeeService.GetByID. Bytes that are not printable
// ASCII are written as %XX. Rules whose names differ in the package only look the same
// to clients.
//
// Name is called from many goroutines. If it panics, the limit has no public name.
func WithPolicyName(name func(rule string) string) Option {
	return func(s *Server) {
		if name != nil {
			s.policyName = name
		}
	}
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

// WithoutFields leaves the fields ratelimit and ratelimit-policy out of the
// metadata of every answer.
func WithoutFields() Option {
	return func(s *Server) { s.hidden = true }
}

// WithLimits applies limits to methods by their names, with no directive. Of the
// limits that one WithLimits has for a call, all are charged or none. The option may
// be given several times; they then decide in their order, and the first refusal
// counts. It panics if the limiter is nil or a limit is malformed, see [Limit].
func WithLimits(limiter *runtime.Limiter, limits ...Limit) Option {
	if limiter == nil {
		panic("raterpc.WithLimits: the limiter is nil, so nothing would be limited")
	}
	for i := range limits {
		limits[i].check()
	}
	checkCount(limits)
	limits = slices.Clone(limits)
	return func(s *Server) { s.limited = append(s.limited, limited{limiter, limits}) }
}
