package ratefield

import (
	"slices"
	"strconv"
	"strings"
)

// The most that is read of a header in which a client lists what it accepts.
const (
	maxAccept    = 1024 // bytes
	maxLanguages = 16
	maxTag       = 35 // bytes: RFC 5646, section 4.4.1
)

// Messages are the texts of refusals in other languages. A text is that of a rule in a
// language such as "zh-Hant" or "zh", always in lower case, or empty if there is none.
// The rule is empty for a call that could not be decided. "{retry_after}" in a text is as
// in [runtime.MessageText]. The function is called from many goroutines.
type Messages func(language, rule string) string

// Choose returns the first text for a rule in the languages that a client accepts, by the
// lines of its header Accept-Language, and the language. Both are empty if there is no
// text. A function that panics has none.
func (m Messages) Choose(accept []string, rule string) (text, language string) {
	if m == nil {
		return "", ""
	}
	defer func() {
		if recover() != nil {
			text, language = "", ""
		}
	}()
	for _, language := range Languages(accept) {
		if text := m(language, rule); text != "" {
			return text, language
		}
	}
	return "", ""
}

// Languages returns the languages of the lines of a header Accept-Language in lower
// case, the most wanted first, each followed by those that it is a kind of: RFC 9110,
// section 12.5.4, and RFC 4647, section 3.4. What is no language is left out.
func Languages(accept []string) []string {
	type wanted struct {
		tag     string
		quality float64
	}
	var all []wanted
	read := 0
	for _, line := range accept {
		if read += len(line); read > maxAccept {
			break
		}
		for part := range strings.SplitSeq(line, ",") {
			tag, params, _ := strings.Cut(part, ";")
			tag = strings.ToLower(strings.Trim(tag, " \t"))
			if q := Quality(params); q > 0 && isTag(tag) && len(all) < maxLanguages {
				all = append(all, wanted{tag, q})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b wanted) int {
		if a.quality > b.quality {
			return -1
		}
		if a.quality < b.quality {
			return 1
		}
		return 0
	})
	var tags []string
	for _, w := range all {
		for tag := w.tag; tag != ""; {
			if !slices.Contains(tags, tag) {
				tags = append(tags, tag)
			}
			tag = tag[:max(0, strings.LastIndexByte(tag, '-'))]
			if n := len(tag); n > 1 && tag[n-2] == '-' {
				tag = tag[:n-2] // a subtag of one letter only announces others
			}
		}
	}
	return tags
}

// isTag reports whether s can be a language.
func isTag(s string) bool {
	if s == "" || len(s) > maxTag || s[0] == '-' || s[len(s)-1] == '-' || strings.Contains(s, "--") {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool { return c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') })
}

// Quality returns the parameter q of an element of a header, which is 1 if there is none
// and 0 if it cannot be read.
func Quality(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, value, ok := strings.Cut(strings.Trim(param, " \t"), "=")
		if ok && strings.EqualFold(name, "q") {
			q, err := strconv.ParseFloat(value, 64)
			if err != nil || !(q >= 0 && q <= 1) {
				return 0
			}
			return q
		}
	}
	return 1
}
