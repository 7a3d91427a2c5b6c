package override

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rategen/rategen/runtime/internal/private"
)

// A Target is what an override is for: a rule, keys or shares of a rule, or all limits. It
// is what a field of the hash names.
type Target struct {
	Rule    string // its name, or [All]
	Pattern string // of keys or shares
	Keys    bool   // it is for keys of the rule, and not for the rule
	Shares  bool   // it is for shares of the rule
}

// list returns under which field of its rule the target may stand, or nothing.
func (t Target) list() string {
	if t.Keys {
		return "keys"
	}
	if t.Shares {
		return "shares"
	}
	return ""
}

// targetIn returns the target that is keys or shares of a rule, by the field that has them.
func targetIn(rule, list, pattern string) Target {
	return Target{rule, pattern, list == "keys", list == "shares"}
}

// All is the Rule of the [Target] that is for all limits. No rule that has this
// name can be overridden in a hash.
const All = "*"

// fieldOf returns the field of the hash for a target: what [targetOf] reads.
func fieldOf(t Target) string {
	if t.Keys {
		return encoded([]string{t.Rule, t.Pattern})
	}
	if t.Shares {
		return encoded([]string{t.Rule, "share", t.Pattern})
	}
	if strings.HasPrefix(t.Rule, "[") {
		return encoded([]string{t.Rule})
	}
	return t.Rule
}

var errField = errors.New(`a field that starts with [ is a list in JSON: write ["rule", "key"], ["rule", "share", "tenant"], or ["rule"] for a rule whose name starts so`)

// named returns the name of a field for an error. That of a key's is private.
func named(field string) any {
	if strings.HasPrefix(field, "[") {
		return private.Text(field)
	}
	return field
}

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

// An index has the fields of a hash by what they are for. A broken hash may have several for one target, and
// fields that name none: these stand by their own names.
type index map[Target][]string

func indexOf(fields map[string]string) index {
	x := make(index, len(fields))
	for field := range fields {
		t, err := targetOf(field)
		if err != nil {
			t = Target{Rule: field}
		}
		x[t] = append(x[t], field)
	}
	return x
}

// field returns in which of the fields the override of a target stands, or is to stand.
func (i index) field(fields map[string]string, t Target) string {
	for _, field := range i[t] {
		if _, is := fields[field]; is {
			return field
		}
	}
	field := fieldOf(t)
	i[t] = append(i[t], field)
	return field
}

// known returns which fields an override of the target has in a hash.
func (t Target) known() string {
	if t.Keys {
		return keyFields
	}
	if t.Shares {
		return shareFields
	}
	if t.Rule == All {
		return allFields
	}
	return ruleFields
}

// changeIn returns what a field is for, and what it says, which may be nothing.
func changeIn(fields map[string]string, field string) (t Target, c Change, err error) {
	value, is := fields[field]
	if t, err = targetOf(field); err == nil && is {
		var n *node
		if n, err = parseJSON([]byte(value)); err == nil {
			c, _, err = changeOf(n, t.known(), nil)
		}
	}
	if err != nil {
		return t, Change{}, private.Errorf("field %.80q: %w", named(field), err)
	}
	return t, c, nil
}

// encoded returns a value in JSON, which has no error for those here.
func encoded(v any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // names of rules are easier to read so
	_ = encoder.Encode(v)
	return strings.TrimSuffix(text.String(), "\n")
}
