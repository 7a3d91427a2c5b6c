package ratehttp

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/rule"
)

// Usage returns a handler that tells clients what is left of their own limits, without
// charging anything. Left finds the client that a request is from, and returns its usages,
// those of [runtime.Limiter.Usage] or of a generated method:
//
//	mux.Handle("GET /limits", ratehttp.Usage(func(r *http.Request) ([]runtime.Usage, error) {
//		return orders.PlaceUsage(r.Context(), userOf(r))
//	}))
//
// The answer to GET and HEAD has the fields RateLimit-Policy and RateLimit, and an object
// with a member limits, a list of objects in the order of the usages:
//
//   - name is the policy's public name, and unit what it counts, if that is not requests;
//   - limit and remaining are whole numbers;
//   - window is in seconds. Day, week, month or year is the period that limit refers to, if
//     it is one of the calendar;
//   - reset is the time until the limit is whole again in seconds, rounded up, or 0;
//   - retry_after is the time until a request would be admitted, likewise. It is missing if
//     none ever is;
//   - past is a list of the last periods, of a rule with a [runtime.Rule.Keep], the last one
//     first: when each began and ended, as in RFC 3339, and how much was used.
//
// Limits that are hidden from clients, by their [ratefield.Audience] or as they refuse
// nobody, are left out. An error of left that is a refusal is answered as by [Error], one
// with a method StatusCode() int by that status, and others by 500; its text is not shown.
// The handler works below a [Middleware], with its options, and by itself. Each request
// takes one to Redis: a [RequestLimit] around the handler bounds them. It panics if left is
// nil.
func Usage(left func(*http.Request) ([]runtime.Usage, error)) http.Handler {
	if left == nil {
		panic("ratehttp: the function of Usage is nil")
	}
	return usage(left)
}

type usage func(*http.Request) ([]runtime.Usage, error)

// A usageView is what a client reads of one limit.
type usageView struct {
	Name       string `json:"name"`
	Unit       string `json:"unit,omitempty"`
	Limit      int64  `json:"limit"`
	Remaining  int64  `json:"remaining"`
	Window     int64  `json:"window,omitempty"`
	Period     string `json:"period,omitempty"`
	Reset      int64  `json:"reset"`
	RetryAfter *int64 `json:"retry_after,omitempty"`
	Past       []past `json:"past,omitempty"`
}

// A past period is one that is over.
type past struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	Used  int64     `json:"used"`
}

func (left usage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := exchangeOf(r.Context())
	if e == nil {
		e, w, r = standard.begin(w, r)
		defer e.end()
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		return
	}
	usages, err := left(r)
	if err != nil {
		failUsage(w, r, err)
		return
	}
	views, states, members := []usageView{}, []ratefield.State{}, []ratefield.Member{}
	for i := range usages {
		u := &usages[i]
		state, shown := ratefield.StateOf(eventOf(u))
		policy := e.config.policies.Lookup(u.Rule, u.Outgoing)
		if !shown || policy.Audience != ratefield.Public {
			continue
		}
		m := state.Member(policy)
		if e.config.partition != nil {
			m.Partition = e.partitionKey(u.Rule)
		}
		states, members = append(states, state), append(members, m)
		views = append(views, viewOf(u, &m))
	}
	h := w.Header()
	if e.config.legacy {
		e.config.writeLegacy(h, states, http.StatusOK)
	}
	if len(members) > 0 && !e.config.silent {
		add(h, policyField, []string{string(ratefield.AppendPolicies(nil, members))})
		add(h, limitField, []string{string(ratefield.AppendLimits(nil, members, e.config.draft))})
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	body, _ := json.Marshal(map[string][]usageView{"limits": views}) // strings and numbers
	send(w, http.StatusOK, "application/json", append(body, '\n'))
}

// viewOf returns what a client reads of a usage that the fields tell by m.
func viewOf(u *runtime.Usage, m *ratefield.Member) usageView {
	v := usageView{Name: ratefield.Printable(m.Name), Unit: m.Unit, Limit: u.Limit, Remaining: u.Remaining, Window: m.Window}
	if u.ResetAfter > 0 {
		v.Reset = ratefield.Seconds(u.ResetAfter)
	}
	if u.RetryAfter == 0 {
		v.RetryAfter = new(int64(0))
	} else if u.RetryAfter != runtime.Never {
		v.RetryAfter = new(m.Effective)
	}
	if u.Period != rule.NoPeriod {
		v.Period = u.Period.String()
	}
	for _, p := range u.Past {
		v.Past = append(v.Past, past(p))
	}
	return v
}

// eventOf returns the decision that a call of cost 1 would meet.
func eventOf(u *runtime.Usage) *observe.DecisionEvent {
	ev := &observe.DecisionEvent{
		Rule: u.Rule, Outgoing: u.Outgoing, Source: rule.SourceStore, Mode: u.Mode, Algorithm: u.Algorithm, Window: u.Window,
		Limit: u.Limit, Max: u.Max, Remaining: u.Remaining, RetryAfter: u.RetryAfter, ResetAfter: u.ResetAfter,
	}
	if u.RetryAfter > 0 {
		ev.Verdict = observe.VerdictRefused
	}
	return ev
}

// failUsage answers a request whose usages are not known.
func failUsage(w http.ResponseWriter, r *http.Request, err error) {
	if Error(w, r, err) {
		return
	}
	status := http.StatusInternalServerError
	var own interface{ StatusCode() int }
	if r.Context().Err() != nil {
		status = http.StatusServiceUnavailable
	} else if errors.As(err, &own) && own.StatusCode() >= 400 && own.StatusCode() <= 599 {
		status = own.StatusCode()
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, http.StatusText(status), status)
}
