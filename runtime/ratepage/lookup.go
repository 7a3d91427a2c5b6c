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

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A namedRule is a rule as it holds now, and its limiter.
type namedRule struct {
	observe.RuleState
	core *operate.Core
	rule operate.Rule
}

// registered returns the rules of all limiters.
func (p *Page) registered() (all []namedRule) {
	for _, l := range p.all() {
		states := l.Rules()
		core := operate.NewCore(l, states)
		for i, s := range states {
			all = append(all, namedRule{s, core, core.Rules[i]})
		}
	}
	return all
}

// named returns the rules of a name. They differ in where they are declared.
func (p *Page) named(name string) []namedRule {
	return slices.DeleteFunc(p.registered(), func(f namedRule) bool { return f.Rule.Name != name })
}

// A keyView is what is left for a key.
type keyView struct {
	Rule   string      `json:"rule"`
	Key    string      `json:"key"`
	Limits []limitView `json:"limits"`           // of each rule of the name; of no name: of rules that concern the key, the worst first
	Others int         `json:"others,omitempty"` // rules that have counted nothing for the key
}

// A limitView is what a call of a cost of 1 would find now of one rule.
type limitView struct {
	operate.State
	Source  string           `json:"source"`
	Error   string           `json:"error,omitempty"`   // the class of a failure: nothing else is known
	Holders []operate.Holder `json:"held_by,omitempty"` // of permits, the first one first
	// Shares are those that have used most of late, of a limit that they divide, and SharesTotal how many there are.
	Shares      []operate.Tenant `json:"shares,omitempty"`
	SharesTotal int64            `json:"shares_total,omitempty"`
}

// serveKey answers with what is left for the key of a rule, or without one of all rules. It charges nothing.
func (p *Page) serveKey(w http.ResponseWriter, r *http.Request) {
	v, err := p.look(r)
	if err != nil {
		writeFailure(w, err)
		return
	}
	writeJSON(w, http.StatusOK, encode(v))
}

func (p *Page) look(r *http.Request) (v keyView, err error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil { // it would be as if the key had been left out
		return v, badRequest("the address of the request is wrong: %v: write a %% of a key as %%25", err)
	}
	for name := range q {
		if !slices.Contains([]string{"rule", "key", "max"}, name) {
			return v, badRequest("unknown parameter %.80q: there are rule, key and max", name)
		}
	}
	key, err := rule.ParseKey(q.Get("key"))
	if err != nil {
		return v, err
	}
	v = keyView{Rule: q.Get("rule"), Key: keyText(key.String()), Limits: []limitView{}}
	found := p.registered()
	if v.Rule == "" && v.Key == "" {
		return v, badRequest("name a rule, or the key of a caller")
	}
	if v.Rule == "" {
		found = slices.DeleteFunc(found, func(f namedRule) bool { return f.KeyParts != 0 && f.KeyParts != 1+strings.Count(v.Key, ":") })
	} else if found, err = ofRule(found, v.Rule, q.Get("max")); err != nil {
		return v, err
	}
	all, err := p.limits(r.Context(), found, key)
	if v.Rule != "" {
		v.Limits = all
		for i, f := range found {
			if err == nil {
				all[i].Shares, all[i].SharesTotal, err = operate.Tenants(r.Context(), f.core.Limiter, f.Rule, key)
			}
			for n := range all[i].Shares {
				all[i].Shares[n].Name = p.shownKey(all[i].Shares[n].Name)
			}
		}
		return v, err
	}
	for i, f := range found {
		if l := all[i]; l.Error != "" || l.Used > 0 || l.Refuses() || f.overrides(l.State) {
			v.Limits = append(v.Limits, l)
		}
	}
	v.Others = len(p.rules()) - len(v.Limits)
	slices.SortStableFunc(v.Limits, func(a, b limitView) int { return operate.Worse(a.State, b.State) })
	return v, nil
}

// ofRule returns the rules of a name, of which calls that bring a max bring this one.
func ofRule(all []namedRule, name, most string) ([]namedRule, error) {
	found := slices.DeleteFunc(all, func(f namedRule) bool { return f.Rule.Name != name })
	if len(found) == 0 {
		return nil, unknownRule(name)
	}
	for i, f := range found {
		if !byCall(f.Rule) {
			continue
		}
		core := *f.core
		if core.Max, _ = strconv.ParseInt(most, 10, 64); core.Max < 1 {
			return nil, badRequest("each call of rule %.80q brings a max of its own: say by the parameter max which one this caller has", name)
		}
		found[i].core = &core
	}
	return found, nil
}

// overrides reports whether a state shows that an override is for the key alone.
func (f *namedRule) overrides(s operate.State) bool {
	return f.Keys > 0 && f.Enabled && (s.State == operate.Off || s.Limit != nil && *s.Limit != f.Max && !byCall(f.Rule) && f.Rule.Burst == 0)
}

// limits returns what is left for a key by each of some rules. The error is the first of those that they say.
func (p *Page) limits(ctx context.Context, found []namedRule, key *runtime.Key) ([]limitView, error) {
	processes, _ := p.reports(ctx) // without the right to read that, nobody is named
	asked := map[*operate.Core]bool{}
	for _, f := range found {
		if !asked[f.core] {
			f.core.AskedBefore(ctx)
			f.core.CompareIn(processes)
		}
		asked[f.core] = true
	}
	all := make([]limitView, len(found))
	errs := operate.Together(len(found), func(i int) (err error) {
		f, l := &found[i], &all[i]
		l.Source = f.Rule.Source
		if l.State, err = f.core.State(ctx, f.rule, key); err != nil {
			l.Rule, l.Error = f.Rule.Name, runtime.ClassOf(err).String()
		}
		return err
	})
	for i, f := range found {
		all[i].Holders = operate.HoldersOf(processes, f.Rule.Name, key.String(), f.core.Hidden(key.String()))
	}
	return all, cmp.Or(errs...)
}

// A hotKeyView is a key that was refused often.
type hotKeyView struct {
	Rule   string `json:"rule"`
	Key    string `json:"key"`
	Count  uint64 `json:"count"`
	Margin uint64 `json:"margin"` // by how much count may be too high
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
		v.Keys = append(v.Keys, hotKeyView{k.Rule, p.shownKey(keyText(k.Key)), k.Count, k.Margin})
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
