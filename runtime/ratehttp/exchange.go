package ratehttp

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefield"
)

// An exchange is what is known of a request and its answer. It is the context of the
// request, too, which saves a lookup and memory.
type exchange struct {
	context.Context
	caller   caller
	config   *config
	outer    *http.Request // that the middleware got
	request  *http.Request // its copy, which the handler gets
	writer   writer
	jitter   int64 // in seconds
	record   ratefield.Record
	refused  bool // the network of the client is
	returned bool // the handler has, without a panic

	answered atomic.Bool // with a refusal, perhaps when a layer between has given up on the handler

	mu      sync.Mutex
	charged []charged // by a [RequestLimit]
	one     [1]charged
}

type exchangeKey struct{}

// Value implements [context.Context].
func (e *exchange) Value(key any) any {
	switch key {
	case exchangeKey{}:
		return e
	case clientKey{}:
		return &e.caller
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
	e := &exchange{Context: r.Context(), config: c, outer: r}
	e.caller.begin(&c.clients, r.RemoteAddr, r.Header.Values)
	e.record.Holds = &c.holds
	e.charged = e.one[:0]
	e.writer.inner, e.writer.exchange, e.writer.encodes = w, e, isEncoder(w)
	if c.jitter > 0 {
		e.jitter = rand.Int64N(c.jitter + 1)
	}
	ctx := e.record.Begin(e)
	exempt, refused := e.caller.network()
	if e.refused = refused; exempt {
		ctx = runtime.WithoutLimits(ctx)
	}
	e.request = r.WithContext(ctx)
	return e, e.writer.facade(), e.request
}

// end ends the exchange when its handler has returned or panicked. It writes the fields
// for a handler that has written nothing: the server, or a middleware that contains
// panics, writes an answer then.
func (e *exchange) end() {
	copyBack(e.outer, e.request)
	e.record.End()
	status := e.writer.status // 0: nothing was written
	if refusal, hidden := e.hides(status); hidden {
		if e.config.force && e.returned && !e.writer.started.Load() {
			e.overrule(refusal)
		} else {
			refusal.Hidden(e, e.request.Pattern)
		}
	}
	e.writer.start(http.StatusOK)
}

// hides reports whether an answer with a status hides a refusal of the request, and
// which. Status 0 is an answer that the handler has not written. A success may be what
// a handler has in place of what was refused, and a client that gets 503 comes back. The
// status of a procedure call says nothing.
func (e *exchange) hides(status int) (refusal runtime.Refusal, hidden bool) {
	switch {
	case e.answered.Load(), status > 0 && status < 400, status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return refusal, false
	}
	if refusal, hidden = e.record.Refusal(e.config.policies); hidden && protocolOf(e.request) != nil {
		return refusal, false
	}
	return refusal, hidden
}

// overrule answers the request with a refusal.
func (e *exchange) overrule(refusal runtime.Refusal) {
	respond(&e.writer, e.request, e, answerTo(e, e.request, refusal.Err))
}

// violated returns the public names of the policies that have refused the request.
func (e *exchange) violated() (names []string) {
	var room [inlineMembers]ratefield.State
	for _, l := range e.record.Limits(room[:0]) {
		if p := e.config.policies.Lookup(l.Rule, l.Outgoing); l.Denied && p.Audience == ratefield.Public {
			names = append(names, p.Name)
		}
	}
	return names
}

// A charged is what a [RequestLimit] has charged.
type charged struct {
	rule *runtime.Rule
	key  string
}

// charge records that a [RequestLimit] charges a key of its rule, and reports whether one
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
