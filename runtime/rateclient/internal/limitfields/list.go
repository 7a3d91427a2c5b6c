package limitfields

import (
	"strconv"
	"strings"
)

// MaxCount is above all numbers that fields can have: RFC 9651, section 3.3.1.
const MaxCount = 1e15

const (
	// maxField is how long a list may be that is read, in bytes.
	maxField = 8 << 10
	// maxWord is how long a number, a duration or a date may be.
	maxWord = 96
)

// A member is one of a list or a dictionary.
type member struct {
	name       string // of a String or Token, or the key in a dictionary
	value      int64  // of an Integer, or of the key; -1: none
	dictionary bool
	params     map[string]string
}

// number returns the Integer of the first parameter that is there, or -1.
func (m *member) number(params ...string) int64 {
	for _, p := range params {
		if text, ok := m.params[p]; ok {
			return integer(text)
		}
	}
	return -1
}

// members returns the members of a field, so many at most, or none if it is malformed or too long.
func members(lines []string, most int) []member {
	var all []member
	for _, text := range lines {
		if len(text) > maxField {
			return nil
		}
		for text = trim(text); text != ""; {
			m, rest, ok := cutmember(text)
			if !ok {
				return nil
			}
			if len(all) < most {
				all = append(all, m)
			}
			if text = trim(rest); text == "" {
				break
			}
			rest, ok = strings.CutPrefix(text, ",")
			if text = trim(rest); !ok || text == "" { // a comma at the end is malformed
				return nil
			}
		}
	}
	return all
}

// cutmember reads the first member of a text.
func cutmember(text string) (m member, rest string, ok bool) {
	m.value = -1
	name, rest, ok := cutItem(text)
	if !ok {
		return m, text, false
	}
	if n, err := strconv.ParseInt(name, 10, 64); err == nil && text[0] != '"' {
		m.value, name = n, ""
	}
	m.name = name
	if value, is := strings.CutPrefix(rest, "="); is {
		if value, rest, ok = cutItem(value); !ok {
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
		if m.params == nil {
			m.params = map[string]string{}
		}
		m.params[key] = value
	}
	return m, rest, true
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
