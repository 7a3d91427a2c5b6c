package ratehttp

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefield"
)

// The most that is kept of one request. What is over this is left out of the fields.
const (
	maxLimits   = 16
	maxRefusals = 8
)

// An exchange is what is known of a request and its answer. It is the context of the
// request, too, which saves a lookup and memory.
type exchange struct {
	context.Context
	config  *config
	request *http.Request // that the handler gets
	writer  writer
	jitter  int64 // in seconds

	peer      string
	forwarded []string // the lines of the trusted proxies' header
	proxied   bool     // there is a header that nobody was told to read

	mu       sync.Mutex
	client   string // or empty, as long as nobody has asked
	limits   []ratefield.Limit
	room     [2]ratefield.Limit // of limits, at first
	refusals []runtime.Refusal
	charged  []charged // by a [Limit]
	one      [1]charged
}

type exchangeKey struct{}

// Value implements [context.Context].
func (e *exchange) Value(key any) any {
	if key == (exchangeKey{}) {
		return e
	}
	return e.Context.Value(key)
}

// exchangeOf returns the exchange that a context is of, or nil.
func exchangeOf(ctx context.Context) *exchange {
	e, _ := ctx.Value(exchangeKey{}).(*exchange)
	return e
}

// begin starts an exchange, and returns the writer and the request for its handler.
// The exchange is over when end was called.
func (c *config) begin(w http.ResponseWriter, r *http.Request) (*exchange, http.ResponseWriter, *http.Request) {
	e := &exchange{Context: r.Context(), config: c, peer: r.RemoteAddr}
	e.limits, e.charged = e.room[:0], e.one[:0]
	e.writer = writer{inner: w, exchange: e, encodes: isEncoder(w)}
	switch {
	case c.header != "":
		e.forwarded = r.Header[c.header]
	case c.unix:
		e.forwarded = r.Header[XForwardedFor]
	default:
		e.proxied = c.checks.due(untrustedProxy) && (r.Header[XForwardedFor] != nil || r.Header[Forwarded] != nil || r.Header["X-Real-Ip"] != nil)
	}
	if c.jitter > 0 {
		e.jitter = rand.Int64N(c.jitter + 1)
	}
	ctx := runtime.WithRefusals(runtime.WithRecorder(e, e.decided), e.refused)
	e.request = r.WithContext(ctx)
	return e, e.writer.facade(), e.request
}

// end writes the fields for a handler that has written nothing: the server, or a
// middleware that contains panics, writes an answer then.
func (e *exchange) end() { e.writer.start(http.StatusOK) }

// decided records a decision about one limit.
func (e *exchange) decided(ev runtime.DecisionEvent) {
	l, ok := ratefield.LimitOf(&ev)
	if !ok {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.limits {
		if o := &e.limits[i]; o.Rule == l.Rule {
			if tighter(&l, o) {
				*o = l
			}
			return
		}
	}
	if len(e.limits) < maxLimits {
		e.limits = append(e.limits, l)
	}
}

// tighter reports whether l says more about the next request than o, an earlier
// decision about the same rule, does.
func tighter(l, o *ratefield.Limit) bool {
	if l.Counted != o.Counted {
		return l.Counted || l.Denied
	}
	return l.Left <= o.Left
}

// refused records a refusal that the program has given another form.
func (e *exchange) refused(r runtime.Refusal) {
	if r.Err == r.Returned {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.refusals) == maxRefusals {
		e.refusals = append(e.refusals[:0], e.refusals[1:]...)
	}
	e.refusals = append(e.refusals, r)
}

// cause returns the limiter's own error for one that the program has made of it, or
// nil. The latest refusal counts if the program makes the same error of all.
func (e *exchange) cause(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := len(e.refusals) - 1; i >= 0; i-- {
		if errors.Is(err, e.refusals[i].Returned) {
			return e.refusals[i].Err
		}
	}
	return nil
}

// violated returns the public names of the policies that have refused the request.
func (e *exchange) violated() (names []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.limits {
		if l := &e.limits[i]; l.Denied {
			if p := e.config.policies.of(l.Rule); !p.Hidden {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

// clientIP returns the client of the request, as [ClientIP] does.
func (e *exchange) clientIP() string {
	if e.proxied {
		e.config.checks.warn(untrustedProxy)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.client == "" {
		e.client = e.config.group(e.config.client(e.peer, e.forwarded))
	}
	return e.client
}

// A charged is what a [Limit] has charged.
type charged struct {
	rule *runtime.Rule
	key  string
}

// charge records that a [Limit] charges a key of its rule, and reports whether one
// has before.
func (e *exchange) charge(rule *runtime.Rule, key string) (again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := charged{rule, key}
	if slices.Contains(e.charged, c) {
		return true
	}
	e.charged = append(e.charged, c)
	return false
}
