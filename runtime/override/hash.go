package override

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
)

func parseHash(fields map[string]string) (reading, error) {
	p := hashParser{targets: make(map[Target]bool), known: make(map[[2]string]Change)}
	for i, field := range slices.Sorted(maps.Keys(fields)) {
		if err := p.field(field, fields[field]); err != nil {
			return reading{}, inField(field, i+1, len(fields), err)
		}
	}
	p.put(time.Time{})
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
	if err == nil {
		p.said = append(p.said, statement{t, c, t.Rule == All})
	}
	return err
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
