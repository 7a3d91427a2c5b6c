package ratehttp

import (
	"net/http"
	"net/netip"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/report"
)

// A RequestLimit limits a handler that has no directive. Its method [RequestLimit.Wrap] is a
// middleware for every router that speaks net/http:
//
//	mux.Handle("POST /login", ratehttp.RequestLimit{Limiter: limiter, Rule: logins}.Wrap(login))
//
// A refused request is answered as [Deny] does, and does not reach the handler. A
// RequestLimit works below a [Middleware], with its options, and by itself.
type RequestLimit struct {
	// Limiter decides. It must not be nil.
	Limiter *runtime.Limiter
	// Rule is the limit, whose Name gives the policy its public name. It must not
	// be nil.
	Rule *runtime.Rule
	// Key returns whose budget a request is charged to. A nil Key is the client's
	// address, see [ClientIP]. Requests with an empty key share one budget.
	Key func(*http.Request) string
	// Cost returns how many events a request stands for. 0 passes and charges
	// nothing. A nil Cost is 1 for each.
	Cost func(*http.Request) int64
	// Skip returns true for requests that the limit does not concern. A nil Skip
	// is false for all.
	Skip func(*http.Request) bool
	// Refund returns true if an answer with this status gives the charge back: to
	// count failed log-ins only, it returns status != 401. A handler that has
	// panicked has the status 500, and one that has written nothing 200, also if its client has
	// left. A nil Refund is false for all.
	//
	// The charge stands until the answer is complete, and the field RateLimit is
	// sent before that.
	Refund func(status int) bool
}

// Wrap returns next behind the limit. It panics if the limit has no limiter or no
// rule, or if next is nil: the handler would have no limit. It registers the rule, see
// [runtime.Limiter.Register], which panics if another one's limit would not hold.
func (l RequestLimit) Wrap(next http.Handler) http.Handler {
	if l.Limiter == nil {
		panic("ratehttp: the Limiter of a RequestLimit is nil")
	}
	if l.Rule == nil {
		panic("ratehttp: the Rule of a RequestLimit is nil")
	}
	if next == nil {
		panic("ratehttp: the handler below a RequestLimit is nil")
	}
	if l.Key == nil {
		l.Key = func(r *http.Request) string { return ClientIP(r.Context()) }
	}
	l.Limiter.Register(l.Rule)
	return &limited{l, next}
}

type limited struct {
	RequestLimit
	next http.Handler
}

func (l *limited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := exchangeOf(r.Context())
	if e == nil {
		standard.serve(w, r, l)
		return
	}
	if e.config.cors && isPreflight(r) {
		l.next.ServeHTTP(w, r)
		return
	}
	if l.Skip != nil && l.Skip(r) || !l.Limiter.Enabled() {
		l.next.ServeHTTP(w, r)
		return
	}
	limit := l.limit(e, r)
	decision, err := l.Limiter.Take(r.Context(), limit)
	if err != nil {
		Deny(w, r, err)
		return
	}
	if l.Refund == nil && !l.Rule.Lapses() {
		l.next.ServeHTTP(w, r)
		return
	}
	l.serveAndSettle(e, w, r, decision)
}

// limit returns the limit of a request.
func (l *limited) limit(e *exchange, r *http.Request) runtime.Limit {
	key := l.Key(r)
	if e.charge(l.Rule, key) {
		e.config.checks.warn(report.LimitedTwice, l.Rule.Name)
	}
	if key == r.RemoteAddr {
		if _, err := netip.ParseAddrPort(key); err == nil {
			e.config.checks.warn(report.AddressKey, l.Rule.Name)
		}
	}
	if key == "" {
		e.config.checks.warn(report.EmptyKey, l.Rule.Name)
	}
	limit := l.Rule.Limit(runtime.NewKey().AddString(key))
	if l.Cost != nil {
		limit = limit.WithCost(l.Cost(r))
	}
	return limit
}

// serveAndSettle serves a request, and gives its charge back if its status says so.
// A permit always comes back, and a reservation is settled.
func (l *limited) serveAndSettle(e *exchange, w http.ResponseWriter, r *http.Request, d runtime.Decision) {
	seen := writerOf(w)
	if seen == nil { // a middleware between has a writer of its own
		seen = &writer{inner: w, encodes: isEncoder(w)}
		w = seen.facade()
	}
	status := http.StatusInternalServerError
	defer func() {
		cost := int64(-1) // it stays
		defer func() { l.Limiter.SettleLater(r.Context(), d, cost) }()
		if l.Refund != nil && l.Refund(status) {
			cost = 0
		}
	}()
	l.next.ServeHTTP(w, r)
	status = seen.status
	if !seen.started.Load() {
		status = e.unwritten()
	}
}
