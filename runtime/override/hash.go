package override

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rategen/rategen/runtime"
)

// all is the field of a hash that is for all rules.
const all = "*"

// parseHash returns what the fields of a hash say.
func parseHash(fields map[string]string) (o runtime.Overrides, err error) {
	p := hashParser{rules: make(map[string]runtime.Override), known: make(map[string]runtime.KeyOverride)}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if err := p.field(field, fields[field]); err != nil {
			return runtime.Overrides{}, fmt.Errorf("field %.80q: %w", field, err)
		}
	}
	for rule, keys := range p.keys {
		of := p.rules[rule]
		of.Keys = keys
		p.rules[rule] = of
	}
	if len(p.rules) > maxRules {
		return runtime.Overrides{}, fmt.Errorf("%d rules, the most is %d", len(p.rules), maxRules)
	}
	return runtime.Overrides{Enabled: p.enabled, Rules: p.rules}, nil
}

// A hashParser knows what the fields so far say.
type hashParser struct {
	enabled *bool
	rules   map[string]runtime.Override
	keys    map[string]map[string]runtime.KeyOverride // of rules
	known   map[string]runtime.KeyOverride            // by their texts: many are the same
}

func (p *hashParser) field(field, value string) error {
	if field == all {
		n, err := parseJSON([]byte(value))
		if err == nil {
			p.enabled, err = allOf(n)
		}
		return err
	}
	rule, key, isKey, err := splitField(field)
	switch {
	case err != nil:
		return err
	case isKey:
		of, err := p.keyOverride(value)
		if err != nil {
			return err
		}
		return p.add(rule, key, of)
	}
	if _, twice := p.rules[rule]; twice {
		return fmt.Errorf("rule %.80q comes twice: leave one out", rule)
	}
	n, err := parseJSON([]byte(value))
	if err != nil {
		return err
	}
	of, err := overrideOf(n)
	if err != nil {
		return err
	}
	p.rules[rule] = of
	for key, of := range of.Keys {
		if err := p.add(rule, key, of); err != nil {
			return err
		}
	}
	return nil
}

func (p *hashParser) keyOverride(value string) (runtime.KeyOverride, error) {
	if of, is := p.known[value]; is {
		return of, nil
	}
	n, err := parseJSON([]byte(value))
	if err != nil {
		return runtime.KeyOverride{}, err
	}
	of, err := keyOverrideOf(n)
	if err == nil {
		p.known[value] = of
	}
	return of, err
}

func (p *hashParser) add(rule, key string, of runtime.KeyOverride) error {
	keys := p.keys[rule]
	if _, twice := keys[key]; twice {
		return fmt.Errorf("key %.80q of rule %.80q comes twice: leave one out", key, rule)
	}
	if keys == nil {
		if keys = make(map[string]runtime.KeyOverride); p.keys == nil {
			p.keys = make(map[string]map[string]runtime.KeyOverride)
		}
		p.keys[rule] = keys
	}
	keys[key] = of
	return nil
}

var errField = errors.New(`a field that starts with [ is a list in JSON: write ["rule", "key"], or ["rule"] for a rule whose name starts so`)

// splitField returns the rule that a field is for, and the pattern if there is
// one.
func splitField(field string) (rule, key string, isKey bool, err error) {
	if !strings.HasPrefix(field, "[") {
		return field, "", false, nil
	}
	var parts []*string // nil: null
	if !utf8.ValidString(field) || json.Unmarshal([]byte(field), &parts) != nil ||
		len(parts) < 1 || len(parts) > 2 || slices.Contains(parts, nil) {
		return "", "", false, errField
	}
	if *parts[0] == all {
		return "", "", false, errors.New("the rule is *: name one, since * is for all limits and has no keys")
	}
	if len(parts) == 1 {
		return *parts[0], "", false, nil
	}
	return *parts[0], *parts[1], true, nil
}

// A digest tells sets of fields apart. It depends on two seeds of this process,
// so that nobody can foresee which sets have the same.
type digest [2]uint64

var digestSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// digestOf returns the digest of fields, in whatever order they come.
func digestOf(fields map[string]string) (d digest) {
	d[0] = uint64(len(fields))
	for i, seed := range digestSeeds {
		var h maphash.Hash
		h.SetSeed(seed)
		for name, value := range fields {
			var length [8]byte
			binary.LittleEndian.PutUint64(length[:], uint64(len(name)))
			h.Reset()
			h.Write(length[:])
			h.WriteString(name)
			h.WriteString(value)
			d[i] += h.Sum64()
		}
	}
	return d
}
