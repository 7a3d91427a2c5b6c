package ratepage

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A namedRule is a rule and the limiter that it is registered with.
type namedRule struct {
	observe.RuleState
	limiter *runtime.Limiter
}

// named returns the rules of a name. They differ in where they are declared.
func (p *Page) named(name string) (found []namedRule) {
	for _, l := range p.all() {
		for _, s := range l.Rules() {
			if s.Rule.Name == name {
				found = append(found, namedRule{s, l})
			}
		}
	}
	return found
}

// usageLimit returns the limit of a key of which the usage is asked, and its max. Where each call
// brings its own it is that of the last refusal, or one that no call exceeds.
func (r *namedRule) usageLimit(key *runtime.Key, brought map[[2]string]int64) (limit runtime.Limit, most int64) {
	limit = operate.LimitOf(r.Rule, key)
	if !byCall(r.Rule) {
		return limit, r.Rule.Max
	}
	most, is := brought[[2]string{r.Rule.Name, bridge.LimiterOf(r.limiter).ToldKey(key.String())}]
	if !is {
		most = rule.MaxLog
	}
	return limit.WithMax(most), most
}

// A keyView is what is left for a key.
type keyView struct {
	Rule   string      `json:"rule"`
	Key    string      `json:"key"`
	Limits []limitView `json:"limits"`           // of each rule of the name; of no name: of rules that concern the key
	Others int         `json:"others,omitempty"` // rules that have counted nothing for the key
}

// A limitView is what one rule would decide about a call of a cost of 1 now.
type limitView struct {
	Rule   string `json:"rule,omitempty"` // if no rule was asked for
	Source string `json:"source"`
	Error  string `json:"error,omitempty"` // the class of a failure: nothing else is known
	// Counted is false if the key has no limit: it is switched off.
	Counted bool `json:"counted"`
	Allowed bool `json:"allowed"`
	// Unknown says that each call brings its max, so nobody knows whether the next one is allowed.
	Unknown bool `json:"unknown,omitempty"`
	Blocked bool `json:"blocked"`
	// By says what refuses each call, if something does: override, which blocks the key or
	// admits none, rule, by its Block, or peer, by an answer.
	By        string `json:"blocked_by,omitempty"`
	Shadow    bool   `json:"shadow"`
	Limit     int64  `json:"limit"`
	Used      int64  `json:"used"`
	Remaining int64  `json:"remaining"`
	// WindowMS is the time that the max refers to. Period is its name if it is one of the
	// calendar.
	WindowMS float64 `json:"window_ms"`
	Period   string  `json:"period,omitempty"`
	// Past is what was used of the last periods, the last one first.
	Past []int64 `json:"past,omitempty"`
	// RetryMS and ResetMS are the times until the next call is admitted and until
	// the limit is whole again. RetryMS is null if no call ever is.
	RetryMS *float64 `json:"retry_after_ms"`
	ResetMS float64  `json:"reset_after_ms"`
	// Permits says that the limit is of calls at a time: RetryMS is when it has room at the latest, unless
	// those who hold permits renew them. Holders are who they are, the first one first.
	Permits bool             `json:"permits,omitempty"`
	Holders []operate.Holder `json:"held_by,omitempty"`
	// Shares are those that have used most of late, of a limit that they divide, and SharesTotal how many there are.
	Shares      []operate.Tenant `json:"shares,omitempty"`
	SharesTotal int64            `json:"shares_total,omitempty"`
}

// serveKey answers with what is left for the key of a rule. It charges nothing.
func (p *Page) serveKey(w http.ResponseWriter, r *http.Request) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil { // it would be as if the key had been left out
		writeFailure(w, badRequest("the address of the request is wrong: %v: write a %% of a key as %%25", err))
		return
	}
	for name := range q {
		if !slices.Contains([]string{"rule", "key", "max"}, name) {
			writeFailure(w, badRequest("unknown parameter %.80q: there are rule, key and max", name))
			return
		}
	}
	v := keyView{Rule: q.Get("rule"), Limits: []limitView{}}
	key, err := rule.ParseKey(q.Get("key"))
	found := p.named(v.Rule)
	if v.Rule != "" && len(found) == 0 {
		err = unknownRule(v.Rule)
	} else if v.Rule == "" && err == nil && key.String() == "" {
		err = badRequest("name a rule, or the key of a caller")
	}
	if err != nil {
		writeFailure(w, err)
		return
	}
	v.Key = keyText(key.String())
	if v.Rule == "" {
		p.findKey(r.Context(), &v, key)
		p.nameHolders(r.Context(), &v, key)
		writeJSON(w, http.StatusOK, encode(v))
		return
	}
	for _, f := range found {
		limit, asked := operate.LimitOf(f.Rule, key), f.Rule.Max
		if byCall(f.Rule) {
			n, err := strconv.ParseInt(q.Get("max"), 10, 64)
			if err != nil || n < 0 {
				writeFailure(w, badRequest("each call of rule %.80q brings a max of its own: say by the parameter max which one this caller has", f.Rule.Name))
				return
			}
			limit, asked = limit.WithMax(n), n
		}
		usages, err := f.limiter.Usage(r.Context(), limit)
		if err != nil {
			writeFailure(w, err)
			return
		}
		of := limitViewOf(&f, asked, usages)
		if of.Shares, of.SharesTotal, err = operate.Tenants(r.Context(), f.limiter, f.Rule, key); err != nil {
			writeFailure(w, err)
			return
		}
		for i := range of.Shares {
			of.Shares[i].Name = p.shownKey(of.Shares[i].Name)
		}
		v.Limits = append(v.Limits, of)
	}
	p.nameHolders(r.Context(), &v, key)
	writeJSON(w, http.StatusOK, encode(v))
}

// nameHolders says of limits of permits whose calls hold them. Without the right to read that, nobody is named.
func (p *Page) nameHolders(ctx context.Context, v *keyView, key *runtime.Key) {
	if !slices.ContainsFunc(v.Limits, func(l limitView) bool { return l.Permits && l.Used > 0 }) {
		return
	}
	processes, _ := p.reports(ctx)
	for i := range v.Limits {
		l := &v.Limits[i]
		for _, f := range p.named(cmp.Or(l.Rule, v.Rule)) {
			if l.Permits && f.Rule.Source == l.Source {
				l.Holders = operate.HoldersOf(processes, f.Rule.Name, key.String(), bridge.LimiterOf(f.limiter).ToldKey(key.String()))
			}
		}
	}
}

// limitViewOf shows what is left for a key whose calls ask for a max. Without a usage it has
// no limit.
func limitViewOf(f *namedRule, asked int64, usages []runtime.Usage) limitView {
	if len(usages) == 0 {
		return limitView{Source: f.Rule.Source, Allowed: true, RetryMS: new(0.0)}
	}
	u := &usages[0]
	v := limitView{
		Source: f.Rule.Source, Counted: true, Allowed: u.RetryAfter == 0 || !u.Mode.Refuses(), Shadow: !u.Mode.Refuses(),
		Permits: f.Rule.Algorithm == runtime.Concurrency, Limit: u.Limit, Used: u.Limit - u.Remaining, Remaining: u.Remaining, WindowMS: milliseconds(u.Window), ResetMS: milliseconds(u.ResetAfter),
	}
	if u.Period != rule.NoPeriod {
		v.Period = u.Period.String()
	}
	for _, p := range u.Past {
		v.Past = append(v.Past, p.Used)
	}
	if v.Allowed {
		v.RetryMS = new(0.0)
		return v
	}
	v.Blocked = u.Blocked
	if u.RetryAfter != runtime.Never {
		v.RetryMS = new(milliseconds(u.RetryAfter))
	}
	if u.RetryAfter == runtime.Never && u.Limit == 0 && asked > 0 {
		v.By = "override"
	} else if u.Blocked && f.Rule.Hold {
		v.By = "peer"
	} else if u.Blocked {
		v.By = "rule"
	}
	return v
}

// A hotKeyView is a key that was refused often.
type hotKeyView struct {
	Rule  string `json:"rule"`
	Key   string `json:"key"`
	Count uint64 `json:"count"`
	Over  uint64 `json:"over"` // by how much count may be too high
}

// A hotKeysView is the keys that are refused most.
type hotKeysView struct {
	Keys []hotKeyView `json:"keys"`
	Span float64      `json:"span_ms"` // Count is of the last one or two of these
}

func (p *Page) refusedKeys(now time.Time) hotKeysView {
	v := hotKeysView{Keys: []hotKeyView{}, Span: milliseconds(sketchSpan)}
	if p.keys == nil {
		return v
	}
	for _, k := range p.keys.top(maxRefused, now) {
		v.Keys = append(v.Keys, hotKeyView{k.Rule, p.shownKey(keyText(k.Key)), k.Count, k.Over})
	}
	return v
}

// keyText returns a key as JSON can hold it, and as an operator may type it.
func keyText(key string) string {
	if utf8.ValidString(key) {
		return key
	}
	if parsed, err := rule.ParseKey(key); err == nil {
		return parsed.Pattern()
	}
	return strings.ToValidUTF8(key, "\uFFFD")
}

// keysShown says how keys are shown.
func (p *Page) keysShown() string {
	if p.keys == nil {
		return "off"
	}
	if p.plain {
		return "plain"
	}
	return "masked"
}

// shownKey returns a key as the page shows it: masked, unless keys are shown as they are.
func (p *Page) shownKey(key string) string {
	if p.plain {
		return key
	}
	return maskKey(key)
}

// maskKey returns a key with the first and the last character of each part, so
// that somebody who knows a caller may recognise it.
func maskKey(key string) string {
	const hidden = "•••"
	parts := strings.Split(key, ":")
	for i, part := range parts {
		runes := []rune(part)
		n := len(runes)
		if part == "" {
			continue
		}
		if n < 5 || strings.Contains(part, "%") {
			parts[i] = hidden
		} else {
			parts[i] = string(runes[0]) + hidden + string(runes[n-1])
		}
	}
	return strings.Join(parts, ":")
}

func unknownRule(name string) error {
	return failure{http.StatusNotFound, fmt.Sprintf("no rule has the name %.200q: see api/rules", name)}
}

func badRequest(format string, args ...any) error {
	return failure{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}
