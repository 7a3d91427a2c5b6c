package override

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rule"
)

// parseHash returns what the fields of a hash say.
func parseHash(fields map[string]string) (reading, error) {
	p := hashParser{rules: make(map[string]rule.Override), known: make(map[[2]string]Change), patterns: make(map[Target]map[string]rule.KeyOverride)}
	for i, field := range slices.Sorted(maps.Keys(fields)) {
		if err := p.field(field, fields[field]); err != nil {
			return reading{}, inField(field, i+1, len(fields), err)
		}
	}
	for t, patterns := range p.patterns {
		of := p.rules[t.Rule]
		*patternsOf(&of, t.list()) = patterns
		p.rules[t.Rule] = of
	}
	if len(p.rules) > maxRules {
		return reading{}, private.Errorf("%d rules, the most is %d", len(p.rules), maxRules)
	}
	p.overrides.Rules = p.rules
	return p.reading, nil
}

// A hashParser knows what the fields so far say.
type hashParser struct {
	reading
	rules    map[string]rule.Override
	patterns map[Target]map[string]rule.KeyOverride // of rules, without the Pattern
	known    map[[2]string]Change                   // of patterns, by their lists and texts: many are the same
}

func (p *hashParser) field(field, value string) error {
	target, err := targetOf(field)
	if err != nil {
		return err
	}
	if target.list() != "" {
		c, err := p.patternChange(target, value)
		if err != nil {
			return err
		}
		p.addExpiry(timed{target: target, change: c}, time.Time{})
		return p.add(target, c.At(time.Time{}))
	}
	n, err := parseJSON([]byte(value))
	if err != nil {
		return err
	}
	if target.Rule == All {
		c, _, err := changeOf(n, allFields, nil)
		p.overrides.Enabled = c.Enabled
		p.addExpiry(timed{change: c, all: true}, time.Time{})
		return err
	}
	rule := target.Rule
	if _, twice := p.rules[rule]; twice {
		return private.Errorf("rule %.80q comes twice: leave one out", rule)
	}
	of, err := p.override(n, rule)
	if err != nil {
		return err
	}
	p.rules[rule] = of
	for _, list := range lists {
		for pattern, one := range *patternsOf(&of, list) {
			if err := p.add(targetIn(rule, list, pattern), one); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *hashParser) patternChange(of Target, value string) (Change, error) {
	if c, is := p.known[[2]string{of.list(), value}]; is {
		return c, nil
	}
	n, err := parseJSON([]byte(value))
	if err != nil {
		return Change{}, err
	}
	c, _, err := changeOf(n, of.known(), nil)
	if err == nil {
		p.known[[2]string{of.list(), value}] = c
	}
	return c, err
}

func (p *hashParser) add(t Target, of rule.KeyOverride) error {
	pattern, list := t.Pattern, t.list()
	t.Pattern = ""
	patterns := p.patterns[t]
	if _, twice := patterns[pattern]; twice {
		return private.Errorf("%s %.80q of rule %.80q comes twice: leave one out", list[:len(list)-1], private.Text(pattern), t.Rule)
	}
	if patterns == nil {
		patterns = make(map[string]rule.KeyOverride)
		p.patterns[t] = patterns
	}
	patterns[pattern] = of
	return nil
}

var errField = errors.New(`a field that starts with [ is a list in JSON: write ["rule", "key"], ["rule", "share", "tenant"], or ["rule"] for a rule whose name starts so`)

// inField returns an error with the field that it is in, or the number of the field
// when all are in order, if its name is private.
func inField(field string, number, fields int, err error) error {
	if name, is := named(field).(private.Text); is {
		return private.Errorf("field %.80q (%d of %d in order): %w", name, number, fields, err)
	}
	return private.Errorf("field %.80q: %w", field, err)
}

// named returns the name of a field for an error. That of a key's is private.
func named(field string) any {
	if strings.HasPrefix(field, "[") {
		return private.Text(field)
	}
	return field
}

// targetOf returns what a field is for.
func targetOf(field string) (Target, error) {
	if !strings.HasPrefix(field, "[") {
		return Target{Rule: field}, nil
	}
	var parts []*string // nil: null
	if !utf8.ValidString(field) || json.Unmarshal([]byte(field), &parts) != nil ||
		len(parts) < 1 || len(parts) > 3 || slices.Contains(parts, nil) || len(parts) == 3 && *parts[1] != "share" {
		return Target{}, errField
	}
	if *parts[0] == All {
		return Target{}, errors.New("the rule is *: name one, since * is for all limits and has no keys")
	}
	if len(parts) == 1 {
		return Target{Rule: *parts[0]}, nil
	}
	last := len(parts) - 1
	return Target{*parts[0], *parts[last], last == 1, last == 2}, nil
}
