package override

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/rategen/rategen/runtime/internal/private"
)

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

// encoded returns a value in JSON, which has no error for those here.
func encoded(v any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // names of rules are easier to read so
	_ = encoder.Encode(v)
	return strings.TrimSuffix(text.String(), "\n")
}
