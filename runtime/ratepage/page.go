package ratepage

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A Page shows the limits of the limiters that have its observer. Make one with
// [New]. It is safe for concurrent use.
type Page struct {
	keys    *sketch      // nil: keys are not counted
	plain   bool         // keys are shown as they are
	actions *actions     // nil: nothing can be changed
	logger  *slog.Logger // nil: slog.Default as it is at the time of a line
	viewers int          // how many may look at a time
	hosts   []string     // nil: any

	offers    func(*http.Request, Kind) bool // or nil
	crossSite *http.CrossOriginProtection

	observer       *observe.Observer
	counts         counts
	latencies      latencies
	redis          redisWatch
	history        history
	overridesCache cache // what the editor has said
	processesCache cache
	refusedCaches  [len(refusedSpans)]cache
	changed        atomic.Int64 // how often what holds for rules may have changed

	attached sync.Mutex
	limiters []*runtime.Limiter
	last     weak.Pointer[runtime.Limiter] // that was closed: calls may still come to it

	sampler   sampler
	routes    http.Handler
	looking   atomic.Int64 // streams under way
	searching sync.Mutex
	made      int64         // when the page was, in milliseconds since 1970
	host      string        // of the process
	closed    chan struct{} // ends streams
	once      sync.Once
}

// An Option configures a [Page].
type Option func(*Page)

// WithKeys makes the page count which keys are refused most, and show them masked:
// the first and the last character of each part. Without this option no key is
// kept. What counts is the last five to ten minutes, of up to 1,024 keys at a time.
func WithKeys() Option {
	return func(p *Page) { p.keys, p.plain = newSketch(), false }
}

// WithPlainKeys is WithKeys with keys as they are. They are made of what callers
// send, such as names, addresses or tokens: everybody who may see the page sees
// them.
func WithPlainKeys() Option {
	return func(p *Page) { p.keys, p.plain = newSketch(), true }
}

// WithViewers sets how many streams may be open at a time, [DefaultViewers] by
// default. The next viewer is answered with 503. Viewers whom [WithOffers] offers no action
// may open three quarters of them.
func WithViewers(n int) Option {
	return func(p *Page) { p.viewers = n }
}

// DefaultViewers is how many may look at a page at a time.
const DefaultViewers = 100

// WithTrustedOrigins lets viewers act whose browsers know the page by other addresses
// than its server does: behind a proxy that ends TLS and changes the Host. An origin is
// a scheme, a host and a port unless it is the usual one, as in
// https://limits.example.com. It panics for anything else.
func WithTrustedOrigins(origins ...string) Option {
	return func(p *Page) {
		for _, origin := range origins {
			if err := p.crossSite.AddTrustedOrigin(origin); err != nil {
				panic(fmt.Sprintf("ratepage: trusted origin %q: %v: write it as in https://limits.example.com", origin, err))
			}
		}
	}
}

// WithLogger sets where actions are logged. The default is [slog.Default] as it is
// at the time of the line.
func WithLogger(logger *slog.Logger) Option {
	return func(p *Page) { p.logger = logger }
}

// New returns a page. It shows the limiters that are made with its [Page.Observer].
func New(opts ...Option) *Page {
	p := &Page{viewers: DefaultViewers, crossSite: http.NewCrossOriginProtection(), counts: newCounts(), closed: make(chan struct{}), made: time.Now().UnixMilli()}
	for _, opt := range opts {
		opt(p)
	}
	p.host, _ = os.Hostname() // or there is none to show
	p.observer = p.newObserver()
	p.routes = p.newRoutes()
	return p
}

// Observer returns the observer by which limiters report to the page, for
// [runtime.WithObserver]. It is always the same one. Several limiters may have it:
// the page then shows the rules of all, until each is closed. Calls of rules of one name
// are counted together.
func (p *Page) Observer() *observe.Observer { return p.observer }

// Close ends the streams of all viewers, and later ones at once. A server that is
// to shut down calls it, since streams do not end by themselves:
//
//	server.RegisterOnShutdown(page.Close)
func (p *Page) Close() { p.once.Do(func() { close(p.closed) }) }

// ServeHTTP serves the page, for requests whose prefix is stripped.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if !p.serves(r) {
		writeError(w, http.StatusMisdirectedRequest, fmt.Sprintf("this page is not at %.200q: the program names its hosts by ratepage.WithHosts", r.Host))
		return
	}
	p.routes.ServeHTTP(w, r)
}

func (p *Page) newObserver() *observe.Observer {
	o := &observe.Observer{
		Attach: func(a observe.Limiter) { p.attach(a.(*runtime.Limiter), true) },
		Detach: func(a observe.Limiter) { p.attach(a.(*runtime.Limiter), false) },
		Decision: func(_ context.Context, ev observe.DecisionEvent) {
			p.counts.tally.Decided(&ev)
			if ev.Source == rule.SourceStore {
				p.latencies.add(ev.Latency)
			}
		},
		Failure: func(_ context.Context, ev observe.FailureEvent) { p.redis.failure(ev) },
		Wait:    p.counts.tally.Observer().Wait,
		Hold:    p.counts.tally.Observer().Hold,
		Breaker: func(ev observe.BreakerEvent) { p.redis.breaker(ev, time.Now()) },
		Memory:  func(ev observe.MemoryEvent) { p.redis.memory(ev, time.Now()) },
		Override: func(ev observe.OverrideEvent) {
			p.changed.Add(1)
			if ev.Err != nil {
				p.history.failed(ev.Err, time.Now())
				return
			}
			p.history.overridden(ev, p.rules(), time.Now())
		},
	}
	if p.keys != nil {
		o.KeyRefused = func(_ context.Context, ev observe.KeyRefusedEvent) {
			if !ev.Shadow {
				p.keys.add(ev.Rule, ev.Key, time.Now())
			}
		}
	}
	return o
}

// attach adds a limiter, or takes it away.
func (p *Page) attach(l *runtime.Limiter, is bool) {
	p.attached.Lock()
	defer p.attached.Unlock()
	if is {
		p.limiters = append(p.limiters, l)
	} else {
		p.last = weak.Make(l)
		p.limiters = slices.DeleteFunc(slices.Clone(p.limiters), func(a *runtime.Limiter) bool { return a == l })
	}
	p.changed.Add(1)
}

func (p *Page) all() []*runtime.Limiter {
	p.attached.Lock()
	defer p.attached.Unlock()
	return p.limiters[:len(p.limiters):len(p.limiters)]
}

func (p *Page) rules() []observe.RuleState {
	var rules []observe.RuleState
	for _, l := range p.all() {
		rules = append(rules, l.Rules()...)
	}
	return rules
}
