package ratepage

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/rategen/rategen/internal/bridge"
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
	Limits []limitView `json:"limits"` // of each rule of the name; of no name: of rules that concern the key, the worst first
	// Others is how many rules have counted nothing for the key. Without a rule the key is searched for too: Rules have it
	// in their names, and Keys in theirs.
	Others int                 `json:"others,omitempty"`
	Rules  []string            `json:"rules,omitempty"`
	Keys   []*operate.FoundKey `json:"keys,omitempty"` // refused in the last day, or an override is for them
	More   int                 `json:"more,omitempty"` // of these are left out
	Unread string              `json:"unread,omitempty"`
}

const maxFound = 20

// A limitView is what a call of a cost of 1 would find now of one rule.
type limitView struct {
	operate.State
	Source  string           `json:"source"`
	Error   string           `json:"error,omitempty"`   // the class of a failure: nothing else is known
	Holders []operate.Holder `json:"held_by,omitempty"` // of permits, the first one first
	operate.Divided
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
		p.lookInAll(r.Context(), &v, found, key, q.Get("key"))
		return v, nil
	}
	if found, err = ofRule(found, v.Rule, q.Get("max")); err != nil {
		return v, err
	}
	v.Limits, err = p.limits(r.Context(), found, key)
	for i, f := range found {
		l := &v.Limits[i]
		if err == nil {
			l.Divided, err = operate.SharesOf(r.Context(), f.core.Limiter, f.Rule, key)
		}
		for n := range l.Shares {
			of := &l.Shares[n]
			of.Name = p.shownKey(of.Name)
		}
	}
	return v, err
}

// lookInAll adds what is left for a key by all rules that concern it, and what else has it in its name.
func (p *Page) lookInAll(ctx context.Context, v *keyView, all []namedRule, key *runtime.Key, text string) {
	found := slices.DeleteFunc(slices.Clone(all), func(f namedRule) bool { return f.KeyParts != 0 && f.KeyParts != 1+strings.Count(v.Key, ":") })
	limits, err := p.limits(ctx, found, key) // each says its error
	for i, f := range found {
		if l := limits[i]; l.Error != "" || l.Used > 0 || l.Refuses() || f.overrides(l.State) {
			v.Limits = append(v.Limits, l)
		}
	}
	v.Others = len(all) - len(v.Limits)
	slices.SortStableFunc(v.Limits, func(a, b limitView) int { return operate.Worse(a.State, b.State) })
	for _, f := range all {
		if len(v.Rules) < maxFound && strings.Contains(strings.ToLower(f.Rule.Name), strings.ToLower(text)) && !slices.Contains(v.Rules, f.Rule.Name) {
			v.Rules = append(v.Rules, f.Rule.Name)
		}
	}
	if err == nil { // or all that is asked would wait in vain
		p.search(ctx, v, text)
	} else {
		v.Unread = "redis: " + runtime.ClassOf(err).String()
	}
}

// search adds the keys with a text in them, of those that were refused in the last day or that an override is for: the
// page has nobody walk over Redis. A viewer who sees no keys as they are must know a part of one.
func (p *Page) search(ctx context.Context, v *keyView, text string) {
	p.searching.Lock() // one at a time: each reads the refusals of a day
	defer p.searching.Unlock()
	ctx, cancel := context.WithTimeout(ctx, overridesTimeout)
	defer cancel()
	for _, l := range p.all() {
		core := operate.NewCore(l, l.Rules())
		var entries []operate.Override
		if p.actions != nil && p.actions.editor != nil {
			var err error
			core.Changes = p.actions.editor
			if entries, err = core.Overrides(ctx); err != nil {
				v.Unread = "overrides: " + err.Error()
			}
		}
		found, err := core.Find(ctx, text, entries, math.MaxInt)
		if err = cmp.Or(err, found.Unread); err != nil {
			v.Unread = "redis: " + runtime.ClassOf(err).String()
		}
		for _, k := range found.Keys {
			there := slices.ContainsFunc(v.Limits, func(l limitView) bool { return l.Rule == k.Rule && l.Key == k.Key }) ||
				slices.ContainsFunc(v.Keys, func(o *operate.FoundKey) bool { return o.Rule == k.Rule && o.Key == k.Key })
			if !there && (p.plain || k.Exact) {
				v.Keys = append(v.Keys, k)
			}
		}
	}
	v.More = max(0, len(v.Keys)-maxFound)
	v.Keys = v.Keys[:len(v.Keys)-v.More]
	for _, k := range v.Keys {
		k.Key = p.shownKey(k.Key)
		if k.Refused != nil {
			k.Refused.Key = k.Key
		}
		for i := range k.Overrides {
			k.Overrides[i].Pattern = p.shownKey(k.Overrides[i].Pattern)
		}
	}
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
	asked, away := map[*operate.Core]bool{}, error(nil)
	for _, f := range found {
		if !asked[f.core] {
			_, err := f.core.State(ctx, f.rule, key)
			asked[f.core], away = true, cmp.Or(away, err)
		}
	}
	var processes []bridge.Process
	if away == nil { // reports would wait for as long as the client does
		processes, _ = p.reports(ctx) // without the right to read that, nobody is named
		for core := range asked {
			core.AskedBefore(ctx)
			core.CompareIn(processes)
		}
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
