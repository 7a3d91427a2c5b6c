package operate

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// mostJudged is of how many keys a search finds out what a call would find.
const mostJudged = 5_000

type Found struct {
	Keys      []*FoundKey // the worst first, and those of which a part is what was looked for
	All       int         // keys that there are
	Judged    int         // of these
	Overrides []Override
	// Unread is why it is not known when callers were refused, or nil.
	Unread error
}

// A FoundKey is a key that concerns a caller, with the overrides that decide for it.
type FoundKey struct {
	State
	Refused   *RefusedCaller `json:"refused"`   // null: nothing is told of the last day
	Overrides []Override     `json:"overrides"` // that are in force for it
	rule      Rule
	key       *runtime.Key
	Exact     bool `json:"-"` // a part of it is what was looked for
}

// Find finds the keys of all rules that have a text in them, the first ones of which it returns. Of more
// than mostJudged keys it judges those that were refused, and that overrides are for, before others. With an error it
// returns what it has found: what could not be judged is unknown.
func (c *Core) Find(ctx context.Context, text string, entries []Override, most int) (f Found, err error) {
	look := &lookup{Core: c, texts: Spellings(text), there: make(map[[2]string]bool)}
	if c.Client != nil { // or nobody can look there
		if err := look.inRedis(ctx); err != nil {
			return f, err
		}
	}
	look.overridden(entries)
	refused, unread := c.Refused(ctx, bridge.KeepRefusals, 0)
	look.refusedLately(refused.Callers)
	c.asked = refused.Brought()
	byKey := make(map[[2]string]*RefusedCaller, len(refused.Callers))
	for _, r := range refused.Callers {
		if at := [2]string{r.Rule, r.Text}; byKey[at] == nil || !r.Shadow {
			byKey[at] = r
		}
	}
	found, of := look.found, make(map[string][]Override) // rules
	for _, e := range entries {
		of[e.Rule] = append(of[e.Rule], e)
	}
	for _, k := range found { // without a trip
		k.Overrides = InForce(slices.Concat(of[override.All], of[k.rule.Name]), k.rule, k.key)
		k.Refused = cmp.Or(byKey[[2]string{k.rule.Name, k.key.String()}], byKey[[2]string{k.rule.Name, c.Hidden(k.key.String())}])
	}
	slices.SortFunc(found, func(a, b *FoundKey) int {
		return cmp.Or(TrueFirst(a.Exact, b.Exact), cmp.Compare(b.refusals(), a.refusals()),
			TrueFirst(len(a.Overrides) > 0, len(b.Overrides) > 0), strings.Compare(a.rule.Name, b.rule.Name), strings.Compare(a.Key, b.Key))
	})
	f = Found{All: len(found), Judged: min(len(found), mostJudged), Unread: unread}
	found = found[:f.Judged]
	for some := range slices.Chunk(found, Peeks) {
		errs := Together(len(some), func(i int) error {
			state, failed := some[i].State, err
			if failed == nil { // or the others would fail too
				state, failed = c.State(ctx, some[i].rule, some[i].key)
			}
			if failed == nil {
				some[i].State = state
			}
			return failed
		})
		err = cmp.Or(err, cmp.Or(errs...))
	}
	slices.SortStableFunc(found, func(a, b *FoundKey) int { // what keeps the caller out comes first
		return cmp.Or(TrueFirst(a.Exact, b.Exact), TrueFirst(a.Refuses(), b.Refuses()), cmp.Compare(min(b.refusals(), 1), min(a.refusals(), 1)), Worse(a.State, b.State))
	})
	f.Keys = found[:min(len(found), most)]
	f.Overrides = slices.DeleteFunc(slices.Clone(entries), func(e Override) bool {
		has, _ := holds(e.Pattern, look.texts)
		return !e.Keys || !has || slices.ContainsFunc(found, func(k *FoundKey) bool {
			return slices.ContainsFunc(k.Overrides, func(o Override) bool { return o.Target == e.Target })
		})
	})
	return f, err
}

// refusals is how often the key was refused in the last day.
func (k *FoundKey) refusals() int64 {
	if k.Refused == nil || k.Refused.Shadow {
		return 0
	}
	return k.Refused.Refused
}

// TrueFirst orders what is true before what is not.
func TrueFirst(a, b bool) int {
	if a == b {
		return 0
	}
	if a {
		return -1
	}
	return 1
}

// Spellings returns how a text may stand in keys.
func Spellings(text string) (all []string) {
	add := func(part string) {
		if s := runtime.NewKey().AddString(part).String(); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	if key, err := rule.ParseKey(text); err == nil { // perhaps with several parts
		all = append(all, key.String())
	}
	add(text)
	if addr, err := netip.ParseAddr(text); err == nil {
		add(addr.Unmap().String())
		for _, bits := range []int{64, 56, 48} {
			if network, err := addr.Prefix(bits); err == nil && addr.Is6() && !addr.Is4In6() {
				add(network.String())
				add(network.Addr().String())
			}
		}
	}
	return all
}

// holds reports whether a key has a text in it, and whether as a part or as several.
func holds(key string, texts []string) (has, exact bool) {
	for _, text := range texts {
		has = has || strings.Contains(key, text)
		exact = exact || strings.Contains(":"+key+":", ":"+text+":")
	}
	return has, exact
}

// SelectCallers returns the callers whose keys contain a text, or are its hash.
func (c *Core) SelectCallers(callers []*RefusedCaller, text string) []*RefusedCaller {
	texts := Spellings(text)
	return slices.DeleteFunc(callers, func(r *RefusedCaller) bool {
		has, _ := holds(r.Text, texts)
		return !has && !slices.ContainsFunc(texts, func(text string) bool { return r.Text == c.Hidden(text) })
	})
}

// InForce returns which overrides a key is subject to: those of all limits, of the rule and of one pattern.
func InForce(entries []Override, r Rule, key *runtime.Key) (found []Override) {
	patterns := make(map[string]bool)
	found = slices.DeleteFunc(append([]Override{}, entries...), func(e Override) bool {
		return e.Rule != override.All && e.Rule != r.Name || e.Shares || e.Ended()
	})
	for _, e := range found {
		patterns[e.Pattern] = patterns[e.Pattern] || e.Keys
	}
	best, is := Matching(patterns, key.Pattern())
	return slices.DeleteFunc(found, func(e Override) bool { return e.Keys && (!is || e.Pattern != best) })
}

type lookup struct {
	*Core
	texts []string
	found []*FoundKey
	there map[[2]string]bool // prefixes and patterns of these
}

// add adds a key of a rule, if it is one that holds a text, and is not there.
func (l *lookup) add(r Rule, text string) {
	has, exact := holds(text, l.texts)
	key, err := rule.ParseKey(text)
	if !has || err != nil {
		return
	}
	if at := [2]string{r.prefix(), key.Pattern()}; !l.there[at] {
		l.there[at] = true
		l.found = append(l.found, &FoundKey{State: State{Rule: r.Name, Key: key.Pattern(), State: Unknown}, rule: r, key: key, Exact: exact})
	}
}

// inRedis has Redis look for keys of rules. One counts for the longest prefix.
func (l *lookup) inRedis(ctx context.Context) error {
	before := "*"
	if l.Namespace != "" {
		before = Literally.Replace(l.Namespace) + ":*"
	}
	patterns := make([]string, len(l.texts))
	for i, text := range l.texts {
		patterns[i] = before + Literally.Replace(text) + "*"
	}
	groups := l.Groups()
	return l.Scan(ctx, patterns, 2000, func(key string) {
		best := -1
		for i, g := range groups {
			if strings.HasPrefix(key, g.Prefix) && (best < 0 || len(g.Prefix) > len(groups[best].Prefix)) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		if text, is := groups[best].Text(key); is {
			l.add(l.Rules[best], text)
		}
	})
}

// overridden adds the keys that only overrides name, and those of rules of one part that a pattern
// is for.
func (l *lookup) overridden(entries []Override) {
	for _, r := range l.Rules {
		patterns := make(map[string]bool)
		keys := slices.Clone(l.texts)
		for _, e := range entries {
			if e.Rule == r.Name && e.Keys {
				patterns[e.Pattern], keys = true, append(keys, e.Pattern)
			}
		}
		for _, text := range keys {
			key, err := rule.ParseKey(text)
			if err != nil || strings.HasSuffix(text, "*") || !r.AnyKey && len(r.Parts) != 1+strings.Count(text, ":") {
				continue
			}
			if _, is := Matching(patterns, key.Pattern()); is {
				l.add(r, text)
			}
		}
	}
}

// refusedLately adds the keys that were refused in the last day, and for which nothing is counted any more.
func (l *lookup) refusedLately(refused []*RefusedCaller) {
	for _, r := range refused {
		if has, _ := holds(r.Text, l.texts); !has { // as most do not
			continue
		}
		i := slices.IndexFunc(l.Rules, func(d Rule) bool { return d.Name == r.Rule })
		if i >= 0 {
			l.add(l.Rules[i], r.Text)
		}
	}
}
