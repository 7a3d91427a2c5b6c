package override

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rule"
)

func parseHash(fields map[string]string) (reading, error) {
	p := hashParser{targets: make(map[Target]bool), known: make(map[[2]string]Change)}
	p.overrides.Rules = make(map[string]rule.Override)
	for i, field := range slices.Sorted(maps.Keys(fields)) {
		if err := p.field(field, fields[field]); err != nil {
			return reading{}, inField(field, i+1, len(fields), err)
		}
	}
	if n := len(p.overrides.Rules); n > maxRules {
		return reading{}, private.Errorf("%d rules, the most is %d", n, maxRules)
	}
	return p.reading, nil
}

// A hashParser knows what the fields so far say.
type hashParser struct {
	reading
	targets map[Target]bool
	known   map[[2]string]Change // by which fields they may have, and their texts: many are the same
}

func (p *hashParser) field(field, value string) error {
	t, err := targetOf(field)
	if err != nil {
		return err
	}
	if p.targets[t] {
		return errors.New("another field is for the same: leave one out")
	}
	p.targets[t] = true
	c, err := p.change(t.known(), value)
	if err != nil {
		return err
	}
	p.addExpiry(timed{target: t, change: c, all: t.Rule == All}, time.Time{})
	says := c.At(time.Time{})
	if t.Rule == All {
		p.overrides.Enabled = says.Enabled
		return nil
	}
	of := p.overrides.Rules[t.Rule]
	if t.list() == "" {
		of = overrideOf(says, of)
	} else {
		patterns := patternsOf(&of, t.list())
		if *patterns == nil {
			*patterns = make(map[string]rule.KeyOverride)
		}
		(*patterns)[t.Pattern] = says
	}
	p.overrides.Rules[t.Rule] = of
	return nil
}

// change returns what a value says of a target that may have some fields.
func (p *hashParser) change(known, value string) (Change, error) {
	if c, is := p.known[[2]string{known, value}]; is {
		return c, nil
	}
	n, err := parseJSON([]byte(value))
	if err != nil {
		return Change{}, err
	}
	c, _, err := changeOf(n, known, nil)
	if err == nil {
		p.known[[2]string{known, value}] = c
	}
	return c, err
}

// inField returns an error with the field that it is in, or the number of the field
// when all are in order, if its name is private.
func inField(field string, number, fields int, err error) error {
	if name, is := named(field).(private.Text); is {
		return private.Errorf("field %.80q (%d of %d in order): %w", name, number, fields, err)
	}
	return private.Errorf("field %.80q: %w", field, err)
}
