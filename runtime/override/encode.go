package override

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Members are an object in JSON by its fields. What is not changed is written
// back as it was.
type members map[string]json.RawMessage

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

// membersOf returns the fields of an object, or nil if the text is none.
func membersOf(text []byte) (m members) {
	if json.Unmarshal(text, &m) != nil {
		return nil
	}
	return m
}

// list returns what stands under a field of patterns.
func (m members) list(name string) members { return membersOf(m[name]) }

// hasList reports whether the object has fields of patterns.
func (m members) hasList() bool {
	return slices.ContainsFunc(lists, func(name string) bool { return len(m.list(name)) > 0 })
}

// until returns when the object ends.
func (m members) until() (t time.Time) {
	_ = json.Unmarshal(m["until"], &t) // if it is invalid, so is the hash
	return t
}
