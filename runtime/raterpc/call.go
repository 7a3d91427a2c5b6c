package raterpc

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/ratehttp"
	"github.com/rategen/rategen/runtime/rule"
)

// A Server is what a server does about rate limits. It is safe for concurrent use.
type Server struct {
	policies *ratefield.Policies
	declared map[string]ratefield.Policy
	holds    ratefield.Holds
	clients  *ratehttp.Clients
	messages ratefield.Messages
	domain   string
	pushback time.Duration // 0: none
	silent   bool          // no fields
	draft    ratefield.Draft
	limited  []limited
	checked  sync.Once

	overruling ratefield.Overruling
}

// NewServer returns a Server with options.
func NewServer(opts ...Option) *Server {
	s := &Server{declared: map[string]ratefield.Policy{}}
	for _, opt := range opts {
		if opt != nil {
			opt(s)
		}
	}
	if s.clients == nil {
		s.clients = ratehttp.NewClients()
	}
	s.policies = ratefield.NewPolicies(s.declared, nil)
	return s
}

// A Call is one call of a method. It is safe for concurrent use.
type Call struct {
	server *Server
	method string
	peer   ratehttp.Peer
	seen   ratefield.Record
	barred error // the client's network is not served

	mu   sync.Mutex
	held []held
}

// A held charge has permits that come back when the call ends.
type held struct {
	limiter  *runtime.Limiter
	decision runtime.Decision
}

// Begin begins a call of a method, "/package.Service/Method". The call learns what
// limiters decide under the context that Begin returns, and [ratehttp.ClientIP] knows its
// client. [Call.End] ends it.
//
// In a request that has passed [ratehttp.Middleware] the client is the one that the
// middleware has found, and the limits that the call meets are told by the call alone.
func (s *Server) Begin(ctx context.Context, method string, peer ratehttp.Peer) (context.Context, *Call) {
	s.checked.Do(s.checkServices)
	c := &Call{server: s, method: method, peer: peer}
	c.seen.Holds = &s.holds
	ratehttp.Claim(ctx)
	ctx, c.barred = s.clients.Begin(ctx, peer)
	return c.seen.Begin(ctx), c
}

// Charge charges the limits of [WithLimits] for an event of the call, where several
// applied them mean any. Msg is the message, or nil. The error is that of
// [runtime.Limiter.Take], or [ratehttp.ErrNetworkRefused].
func (c *Call) Charge(ctx context.Context, on Event, msg any) error {
	if c.barred != nil {
		return c.barred
	}
	for i := range c.server.limited {
		if err := c.charge(ctx, &c.server.limited[i], on, msg); err != nil {
			return err
		}
	}
	return nil
}

func (c *Call) charge(ctx context.Context, by *limited, on Event, msg any) error {
	var few [rule.MaxLimits]runtime.Limit
	limits, permits := few[:0], false
	for i := range by.limits {
		if l := &by.limits[i]; l.charges(on) && l.matches(c.method) {
			limits = append(limits, l.applied(ctx, msg))
			permits = permits || l.Rule.Lapses()
		}
	}
	if len(limits) == 0 {
		return nil
	}
	decision, err := by.limiter.Take(ctx, limits...)
	if permits && err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held = append(c.held, held{by.limiter, decision})
	}
	return err
}

// End returns the permits that the call holds of limits on calls in flight. Call it
// when the handler has returned or panicked.
func (c *Call) End(ctx context.Context) {
	c.seen.End()
	c.mu.Lock()
	all := c.held
	c.held = nil
	c.mu.Unlock()
	for i := range all {
		all[i].limiter.SettleLater(ctx, all[i].decision)
	}
}

// Fields returns the values of the fields [FieldLimit] and [FieldPolicy] as of now,
// as package ratefield writes them. They list every public rule that the call has met,
// except rules in shadow mode and the cap of a process, which is no quota of a client's.
// A value is "" if there is nothing to say.
func (c *Call) Fields() (limit, policy string) {
	if c.server.silent {
		return "", ""
	}
	var room [4]ratefield.State
	var few [4]ratefield.Member
	members := few[:0]
	for _, l := range c.seen.Limits(room[:0]) {
		if p := c.server.policies.Lookup(l.Rule, l.Outgoing); p.Audience == ratefield.Public {
			members = append(members, l.Member(p))
		}
	}
	return string(ratefield.AppendLimits(nil, members, c.server.draft)), string(ratefield.AppendPolicies(nil, members))
}

// Names of the fields of [Call.Fields], as gRPC metadata spells them.
const (
	FieldLimit  = "ratelimit"
	FieldPolicy = "ratelimit-policy"
)

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
	service, method, _ := splitMethod(c.method)
	if len(service) > 255 || len(method) > 255 || !isName(service) || !isName(method) {
		return ""
	}
	return service
}

// isName reports whether a .proto file can have a name.
func isName(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != '.' && r != '_' && !('0' <= r && r <= '9') && !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z')
	})
}
