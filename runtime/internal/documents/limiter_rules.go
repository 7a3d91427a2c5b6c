package documents

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// declare declares a rule. Its keys start with its name, if nothing else is said.
func (p *program) declare(words []string) {
	r := &runtime.Rule{Name: words[0], Window: time.Hour, Max: 10}
	p.set(r, words[1:])
	p.rules[words[0]] = r
}

// register registers rules, and returns what that panics with, without its consequence and the remedy.
func (p *program) register(l *process, names []string) (text string) {
	defer func() {
		if reason := recover(); reason != nil {
			text, _, _ = strings.Cut(fmt.Sprint(reason), ": they would")
		}
	}()
	for _, name := range names {
		l.Register(p.rules[name])
	}
	return ""
}

// set sets fields of a rule.
func (p *program) set(r *runtime.Rule, words []string) {
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "like":
			own := r.Name
			*r = *p.rules[value]
			r.Name = own
		case "adaptive":
			r.Adaptive = p
		default:
			if is, err := document.Set(r, name, value); err != nil || !is {
				p.Fatalf("rule %s: %v", word, err)
			}
		}
	}
}

func (p *program) limits(text string) (all []runtime.Limit) {
	for _, one := range strings.Split(text, " + ") {
		if one != "nothing" {
			all = append(all, p.limit(one))
		}
	}
	return all
}

// limit returns a limit of a rule and a key, which may be left out.
func (p *program) limit(text string) runtime.Limit {
	words := strings.Fields(text)
	name, id, keyed := strings.Cut(words[0], "/")
	r := p.rules[name]
	if r == nil {
		p.Fatalf("no rule is named %s", name)
	}
	var key *runtime.Key
	if keyed {
		key = runtime.NewKey()
		for part := range strings.SplitSeq(id, ":") {
			switch part {
			case "?":
				key.AddInvalid("#" + name + " is nil")
			case "~":
				key.AddBytes(nil)
			default:
				text, err := url.PathUnescape(part)
				if err != nil {
					p.Fatal(err)
				}
				key.AddString(text)
			}
		}
	}
	limit := r.Limit(key)
	for _, word := range words[1:] {
		field, value, is := strings.Cut(word, "=")
		switch {
		case !is:
			limit = limit.WithCost(p.number(field))
		case field == "max":
			limit = limit.WithMax(p.number(value))
		case field == "zone":
			zone, anchor, own := strings.Cut(value, ":")
			if !own {
				anchor = strconv.Itoa(r.Anchor)
			}
			limit = limit.WithPeriod(zone, p.number(anchor))
		case field == "share":
			tenant, weight, _ := strings.Cut(value, ":")
			limit = limit.WithShare(runtime.NewKey().AddString(tenant), p.number(weight))
		default:
			p.Fatalf("no limit has a %s", field)
		}
	}
	return limit
}

// override changes the overrides, which are in force when it returns, or later if they are unread.
func (p *program) override(l *process, words []string) {
	rules := map[string]rule.Override{}
	o := runtime.Overrides{Rules: rules}
	for name, before := range l.board.now.Rules {
		rules[name] = before
	}
	name, key, keyed := strings.Cut(words[0], "/")
	var of rule.KeyOverride
	var share string
	for _, word := range words[1:] {
		field, value, _ := strings.Cut(word, "=")
		var r rule.Rule
		switch field {
		case "max":
			of.Max = new(p.number(value))
		case "burst":
			of.Burst = new(p.number(value))
		case "weight":
			of.Weight = new(p.number(value))
		case "share":
			share = value
		case "enabled":
			of.Enabled = new(value == "true")
		case "mode", "window":
			if _, err := document.Set(&r, field, value); err != nil {
				p.Fatal(err)
			}
			of.Window = nil
			if field == "window" {
				of.Window = &r.Window
			} else {
				of.Mode = &r.Mode
			}
		}
	}
	switch {
	case name == "nothing":
		clear(rules)
	case name == "all":
		o.Enabled = of.Enabled
	case keyed:
		whole := rules[name]
		whole.Keys = with(whole.Keys, key, of)
		rules[name] = whole
	case share != "":
		whole := rules[name]
		whole.Shares = with(whole.Shares, share, of)
		rules[name] = whole
	default:
		rules[name] = rule.Override{Max: of.Max, Burst: of.Burst, Window: of.Window, Mode: of.Mode, Enabled: of.Enabled, Keys: rules[name].Keys, Shares: rules[name].Shares}
	}
	l.board.mu.Lock()
	l.board.now = o
	l.board.mu.Unlock()
	if !slices.Contains(words, "unread") {
		time.Sleep(l.every)
		synctest.Wait()
	}
}

// with returns patterns and one more: a limiter may be reading those before.
func with(before map[string]rule.KeyOverride, pattern string, of rule.KeyOverride) map[string]rule.KeyOverride {
	all := maps.Clone(before)
	if all == nil {
		all = make(map[string]rule.KeyOverride)
	}
	all[pattern] = of
	return all
}
