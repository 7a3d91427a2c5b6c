package raterpc

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefield"
)

// A Server is what a server does about rate limits. It is safe for concurrent use.
type Server struct {
	policyName func(rule string) string
	domain     string
	pushback   time.Duration // 0: none
	hidden     bool          // no fields
	limited    []limited
}

// NewServer returns a Server with options.
func NewServer(opts ...Option) *Server {
	s := &Server{policyName: ratefield.WithoutPackage}
	for _, opt := range opts {
		if opt != nil {
			opt(s)
		}
	}
	return s
}

// A Call is one call of a method. It is safe for concurrent use.
type Call struct {
	server *Server
	method string
	seen   record

	mu   sync.Mutex
	held []held
}

// A held charge has permits that come back when the call ends.
type held struct {
	limiter  *runtime.Limiter
	decision runtime.Decision
	limits   []runtime.Limit
}

// Begin begins a call of a method, "/package.Service/Method". The call learns what
// limiters decide under the context that Begin returns. [Call.End] ends it.
func (s *Server) Begin(ctx context.Context, method string) (context.Context, *Call) {
	c := &Call{server: s, method: method}
	return runtime.WithRefusals(runtime.WithRecorder(ctx, c.seen.add), c.seen.refuse), c
}

// Charge charges the limits of [WithLimits] for an event of the call, where several
// of them mean any. Msg is the message, or nil. The error is that of
// [runtime.Limiter.Take].
func (c *Call) Charge(ctx context.Context, on Event, msg any) error {
	for i := range c.server.limited {
		if err := c.charge(ctx, &c.server.limited[i], on, msg); err != nil {
			return err
		}
	}
	return nil
}

func (c *Call) charge(ctx context.Context, by *limited, on Event, msg any) error {
	var few [runtime.MaxLimits]runtime.Limit
	limits, permits := few[:0], false
	for i := range by.limits {
		if l := &by.limits[i]; l.charges(on) && l.matches(c.method) {
			limits = append(limits, l.of(ctx, msg))
			permits = permits || l.Rule.Algorithm == runtime.Concurrency
		}
	}
	if len(limits) == 0 {
		return nil
	}
	decision, err := by.limiter.Take(ctx, limits...)
	if permits && err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held = append(c.held, held{by.limiter, decision, slices.Clone(limits)})
	}
	return err
}

// End gives back the permits that the call holds of limits on calls in flight. It
// is to be called when the handler has returned or panicked.
func (c *Call) End(ctx context.Context) {
	c.mu.Lock()
	all := c.held
	c.held = nil
	c.mu.Unlock()
	for i := range all {
		all[i].limiter.SettleLater(ctx, all[i].decision, all[i].limits...)
	}
}

// Charges reports whether a limit of [WithLimits] charges an event of the call.
func (c *Call) Charges(on Event) bool {
	for _, by := range c.server.limited {
		for i := range by.limits {
			if l := &by.limits[i]; l.charges(on) && l.matches(c.method) {
				return true
			}
		}
	}
	return false
}

// service returns the name of the service that was called, or "" if it is none that a
// .proto file can have: a server that passes unknown methods on gets any text.
func (c *Call) service() string {
	service, _, _ := splitMethod(c.method)
	if len(service) > 255 || strings.ContainsFunc(service, func(r rune) bool {
		return r != '.' && r != '_' && !('0' <= r && r <= '9') && !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z')
	}) {
		return ""
	}
	return service
}
