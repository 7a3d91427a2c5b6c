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

	overruled bool        // the handler's answer is, by a refusal
	answered  atomic.Bool // with a refusal, perhaps when a layer between has given up on the handler

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
	e.refused = refused
	if exempt {
		ctx = runtime.WithoutLimits(ctx)
	}
	e.request = r.WithContext(ctx)
	return e, e.writer.facade(), e.request
}

// serve has a handler serve a request in an exchange.
func (c *config) serve(w http.ResponseWriter, r *http.Request, h http.Handler) {
	e, w, r := c.begin(w, r)
	defer e.end()
	if e.refused {
		respond(w, r, e, Answer{Err: ErrNetworkRefused, Status: http.StatusForbidden, Reason: ratefield.ReasonNetwork,
			Detail: "Requests from this network are not served."})
	} else {
		h.ServeHTTP(w, r)
	}
	e.returned = true
}

// end ends the exchange when its handler has returned or panicked. It writes the fields
// for a handler that has written nothing: the server, or a middleware that contains
// panics, writes an answer then.
func (e *exchange) end() {
	copyBack(e.outer, e.request)
	e.record.End()
	if e.returned && !e.writer.started.Load() {
		e.overrule(0)
	}
	e.report(e.writer.status)
	e.writer.start(http.StatusOK)
	if e.answered.Load() {
		deleteTrailers(e.writer.inner.Header())
	}
}

// report reports what a client got whose request was refused.
func (e *exchange) report(status int) {
	if e.answered.Load() && !e.overruled {
		return // by the program
	}
	refusal, ok := e.record.Refusal(e.config.policies)
	if ok && (e.overruled || e.tells(status)) {
		e.config.policies.Report(e, refusal, replyOf(status), e.overruled, e.request.Pattern)
	}
}

// replyOf returns what an answer of a handler's is beside a refusal. Status 0 is one that it has not written.
func replyOf(status int) ratefield.Reply {
	if status == 0 || status == http.StatusInternalServerError {
		return ratefield.ReplyUnknown
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		return ratefield.ReplyRefusal
	}
	if status >= 400 {
		return ratefield.ReplyError
	}
	return ratefield.ReplySuccess
}

// tells reports whether a status says what a client gets: that of a connection that is the handler's own
// does not, nor does that of a procedure call, but for a failure.
func (e *exchange) tells(status int) bool {
	return status != http.StatusSwitchingProtocols && (replyOf(status) == ratefield.ReplyUnknown || protocolOf(e.request) == nil)
}

// overrule answers the request with a refusal in place of an answer with a status, if the handler hides
// the one by the other, and reports whether it has.
func (e *exchange) overrule(status int) bool {
	if !e.config.overruling.Overrules(replyOf(status)) || e.answered.Load() || e.writer.started.Load() {
		return false
	}
	refusal, ok := e.record.Refusal(e.config.policies)
	if !ok || !e.tells(status) {
		return false
	}
	e.overruled = true
	respond(&e.writer, e.request, e, answerTo(e, e.request, refusal.Err))
	return true
}

// unwritten returns the status that the client gets if its handler writes nothing.
func (e *exchange) unwritten() int {
	if refusal, ok := e.record.Refusal(e.config.policies); ok && e.config.overruling.Overrules(ratefield.ReplyUnknown) {
		return answerTo(e, e.request, refusal.Err).Status
	}
	return http.StatusOK
}

// IsRefused reports whether a limit has refused a call of the request, and that counts for the answer:
// until its rule has admitted the same key in this request, or the time to come back is over. It is for
// adapters of frameworks that handle errors outside of [Middleware]: such an adapter has the error handled inside then,
// where the status is seen.
func IsRefused(r *http.Request) bool {
	e := exchangeOf(orEmpty(r).Context())
	if e == nil {
		return false
	}
	_, refused := e.record.Refusal(e.config.policies)
	return refused
}

// violated returns the public names of the policies that have refused the request.
func (e *exchange) violated() (names []string) {
	var room [inlineMembers]ratefield.State
	for _, l := range e.record.Limits(room[:0]) {
		if p := e.config.policies.Lookup(l.Rule, l.Outgoing); l.Refused && p.Audience == ratefield.Public {
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
