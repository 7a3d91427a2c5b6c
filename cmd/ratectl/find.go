package main

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// A foundKey is a key that concerns a caller, with the overrides that decide for it.
type foundKey struct {
	keyState
	Refused   *refusedCaller  `json:"refused"` // null: nothing is told of the last day
	Overrides []overrideEntry `json:"overrides"`
	d         declared
	key       *runtime.Key
	exact     bool // a part of it is what was looked for
}

func (f *foundKey) row() []string {
	says := make([]string, len(f.Overrides))
	for i, e := range f.Overrides {
		says[i] = e.describe()
	}
	refused := "-"
	if r := f.Refused; r != nil {
		refused = fmt.Sprintf("%d, last %v", r.Refused, r.last())
	}
	return append(append([]string{f.Rule}, f.keyState.row()...), refused, cmp.Or(strings.Join(says, "; "), "-"))
}

// A findCommand lists all that concerns a caller, whatever the rule.
type findCommand struct {
	pastCommand
	limit int
}

func (c *findCommand) about() about {
	return about{
		name: "find", args: "TEXT", short: "find a caller: rules, keys and overrides", needs: judgesKeys, min: 1, max: 1,
		long: "Finds the keys of all rules with TEXT in a part, those with TEXT as a part first: what is left of each, and how often and when it was refused in the last day, and which overrides decide for it, until when. TEXT is as the caller is called, or as ratectl keys shows a key. " +
			"Of an address it finds the networks /64, /56 and /48 too. Keys for which nothing is counted are shown if an override is for them, or they were refused. Has Redis walk over the database.",
		flags: []cli.Flag{limitFlag(&c.limit), c.nearFlag(), c.maxFlag(), c.secretFlag()},
	}
}

func (c *findCommand) run(ctx context.Context, args []string) error {
	texts := spellings(args[0])
	if args[0] == "" {
		return usagef("find what? Name a caller, as in ratectl find acme")
	}
	look := &lookup{session: &c.session, texts: texts, there: make(map[[2]string]bool)}
	if err := look.inRedis(ctx); err != nil {
		return err
	}
	entries, err := c.decidingEntries(ctx)
	if err != nil {
		return err
	}
	look.overridden(entries)
	refused, _, _, err := c.refused(ctx, runtime.KeepRefusals)
	if err != nil { // what holds now is known without
		c.logger().Printf("when callers were refused is not known: %v", c.explained(err))
	}
	look.refusedLately(refused)
	byKey := make(map[[2]string]*refusedCaller, len(refused))
	for _, r := range refused {
		byKey[[2]string{r.Rule, r.text}] = r
	}
	found := look.found
	slices.SortFunc(found, func(a, b *foundKey) int {
		return cmp.Or(trueFirst(a.exact, b.exact), strings.Compare(a.d.Name, b.d.Name), strings.Compare(a.Key, b.Key))
	})
	all := len(found)
	found = found[:min(all, c.limit)]
	if err := c.statesOf(ctx, found); err != nil {
		return err
	}
	for _, f := range found {
		f.Overrides = inForce(entries, f.d, f.key)
		f.Refused = cmp.Or(byKey[[2]string{f.d.Name, f.key.String()}], byKey[[2]string{f.d.Name, c.hidden(f.key.String())}])
	}
	slices.SortStableFunc(found, func(a, b *foundKey) int { // what keeps the caller out comes first
		if a.exact != b.exact {
			return 0
		}
		return worse(a.keyState, b.keyState)
	})
	rest := slices.DeleteFunc(slices.Clone(entries), func(e override.Entry) bool {
		return !e.Keys || !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(e.Pattern, text) }) ||
			slices.ContainsFunc(found, func(f *foundKey) bool {
				return slices.ContainsFunc(f.Overrides, func(o overrideEntry) bool { return o.Rule == e.Rule && o.Pattern != nil && *o.Pattern == e.Pattern })
			})
	})
	if all == 0 && len(rest) == 0 {
		return nothingf("nothing is counted for a key with %q in %s, and no override is for one; a caller for whom nothing is counted is refused by no rule, unless by a failure policy", args[0], namespaces(c.namespace))
	}
	if err := printEach(&c.printer, "RULE "+keyHead+" REFUSED OVERRIDES", found, (*foundKey).row); err != nil {
		return err
	}
	if all > len(found) {
		c.logger().Printf("these are the first %d of %d keys, see -limit", len(found), all)
		return nil
	}
	for _, e := range rest {
		c.logger().Printf("an override that decides for none of these keys: %s, of rule %s", visible(entryOf(e.Target, e.Change).describe()), printable(e.Rule))
	}
	return nil
}

// spellings returns how a text may stand in keys.
func spellings(text string) (all []string) {
	add := func(part string) {
		if s := runtime.NewKey().AddString(part).String(); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	if key, err := runtime.ParseKey(text); err == nil { // perhaps with several parts
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

// A lookup is for keys that hold one of some texts.
type lookup struct {
	*session
	texts []string
	found []*foundKey
	there map[[2]string]bool // prefixes and patterns of these
}

// add adds a key of a rule, if it is one that holds a text, and is not there.
func (s *lookup) add(d declared, text string) {
	has, exact := holds(text, s.texts)
	key, err := runtime.ParseKey(text)
	if !has || err != nil {
		return
	}
	if at := [2]string{d.Prefix, key.Pattern()}; !s.there[at] {
		s.there[at] = true
		s.found = append(s.found, &foundKey{keyState: keyState{Rule: d.Name, Key: key.Pattern()}, d: d, key: key, exact: exact})
	}
}

// inRedis has Redis look for keys of rules. One counts for the longest prefix.
func (s *lookup) inRedis(ctx context.Context) error {
	before := "*"
	if s.namespace != "" {
		before = literally.Replace(s.namespace) + ":*"
	}
	patterns := make([]string, len(s.texts))
	for i, text := range s.texts {
		patterns[i] = before + literally.Replace(text) + "*"
	}
	groups := s.groups()
	return s.scan(ctx, patterns, 2000, func(key string) {
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
			s.add(s.known[best], text)
		}
	})
}

// overridden adds the keys that only overrides name, and those of rules of one part that a pattern
// is for.
func (s *lookup) overridden(entries []override.Entry) {
	for _, d := range s.known {
		patterns := make(map[string]bool)
		keys := slices.Clone(s.texts)
		for _, e := range entries {
			if e.Rule == d.Name && e.Keys {
				patterns[e.Pattern], keys = true, append(keys, e.Pattern)
			}
		}
		for _, text := range keys {
			key, err := runtime.ParseKey(text)
			if err != nil || strings.HasSuffix(text, "*") || !d.anyKey && len(d.parts) != 1+strings.Count(text, ":") {
				continue
			}
			if _, is := matching(patterns, key.Pattern()); is {
				s.add(d, text)
			}
		}
	}
}

// refusedLately adds the keys that were refused in the last day, and for which nothing is counted any more.
func (s *lookup) refusedLately(refused []*refusedCaller) {
	for _, r := range refused {
		if has, _ := holds(r.text, s.texts); !has { // as most do not
			continue
		}
		i := slices.IndexFunc(s.known, func(d declared) bool { return d.Name == r.Rule })
		if i >= 0 && !slices.ContainsFunc(s.found, func(f *foundKey) bool { return f.d.Name == r.Rule && f.Key == r.Key }) {
			s.add(s.known[i], r.text)
		}
	}
}

// statesOf finds out what a call of each key would find now, some at a time.
func (s *session) statesOf(ctx context.Context, found []*foundKey) error {
	for some := range slices.Chunk(found, peeks) {
		if err := cmp.Or(together(len(some), func(i int) (err error) {
			some[i].keyState, err = s.stateOrBroken(ctx, some[i].d, some[i].key)
			return err
		})...); err != nil {
			return err
		}
	}
	return nil
}
