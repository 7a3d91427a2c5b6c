package rateclient

import (
	"strconv"
	"strings"
	"time"
)

// A member is one of a list or a dictionary of RFC 9651, with the parameters that the
// drafts of RateLimit and RateLimit-Policy know. Numbers are -1 where there are none.
type member struct {
	name       string // of a String or Token, or the key in a dictionary
	value      int64  // of an Integer, or of the key
	dictionary bool
	q, w, r, t int64
	a          int64 // what r is called in the proposal of 2026, where w is t in RateLimit, too
	unit       string
}

// policy returns what a member of RateLimit-Policy says. Before draft 8 it was an Integer.
func (m *member) policy() Quota {
	q := Quota{Name: m.name, Unit: m.unit, Limit: m.q, Window: duration(float64(m.w), time.Second), Remaining: -1}
	if q.Limit < 0 && !m.dictionary {
		q.Limit = m.value
	}
	if q.Unit == "" {
		q.Unit = requests
	}
	return q
}

// members returns the members of a field, maxQuotas at most, or none if it is malformed or
// longer than maxField.
func members(values []string) []member {
	var all []member
	for _, text := range values {
		if len(text) > maxField {
			return nil
		}
		for text = trim(text); text != ""; {
			var m member
			var ok bool
			if m, text, ok = cutMember(text); !ok {
				return nil
			}
			if len(all) < maxQuotas {
				all = append(all, m)
			}
			if text = trim(text); text == "" {
				break
			}
			if text[0] != ',' {
				return nil
			}
			if text = trim(text[1:]); text == "" {
				return nil // a comma at the end
			}
		}
	}
	return all
}

// cutMember reads the first member of a text.
func cutMember(text string) (m member, rest string, ok bool) {
	m = member{value: -1, q: -1, w: -1, r: -1, t: -1, a: -1}
	name, rest, ok := cutItem(text)
	if !ok {
		return m, text, false
	}
	if n, err := strconv.ParseInt(name, 10, 64); err == nil && text[0] != '"' {
		m.value, name = n, ""
	}
	m.name = name
	if strings.HasPrefix(rest, "=") {
		var value string
		if value, rest, ok = cutItem(rest[1:]); !ok {
			return m, text, false
		}
		m.dictionary, m.value = true, integer(value)
	}
	for rest = trim(rest); strings.HasPrefix(rest, ";"); rest = trim(rest) {
		key, value := "", "?1"
		if key, rest, ok = cutItem(trim(rest[1:])); !ok {
			return m, text, false
		}
		if strings.HasPrefix(rest, "=") {
			if value, rest, ok = cutItem(rest[1:]); !ok {
				return m, text, false
			}
		}
		m.set(key, value)
	}
	return m, rest, true
}

func (m *member) set(key, value string) {
	switch key {
	case "q":
		m.q = integer(value)
	case "w", "window": // as gateways spell it
		m.w = integer(value)
	case "r":
		m.r = integer(value)
	case "t":
		m.t = integer(value)
	case "a":
		m.a = integer(value)
	case "qu":
		m.unit = value
	}
}

// cutItem reads a String, without its quotes and escapes, or what else comes before the
// next separator.
func cutItem(text string) (item, rest string, ok bool) {
	if strings.HasPrefix(text, `%"`) { // a Display String, which no name or number is
		text = text[1:]
	}
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, ";,= \t\"")
		if strings.HasPrefix(text, ":") { // a Byte Sequence, which may end in "="
			end = strings.IndexByte(text[1:], ':') + 2
			if end == 1 {
				return "", text, false
			}
		}
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:], end > 0
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(text[1:i]), text[i+1:], true
		}
	}
	return "", text, false
}

// integer reads an Integer that is not negative, or returns -1.
func integer(text string) int64 {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n < 1e15 {
		return n
	}
	return -1
}

func trim(text string) string { return strings.Trim(text, " \t") }
