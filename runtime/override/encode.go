package override

import (
	"bytes"
	"encoding/json"
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

// keys returns what stands under keys.
func (m members) keys() members { return membersOf(m["keys"]) }

// until returns when the object ends.
func (m members) until() (t time.Time) {
	_ = json.Unmarshal(m["until"], &t) // if it is invalid, so is the hash
	return t
}
