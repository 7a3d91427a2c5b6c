package directive

import (
	"go/token"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/internal/nearest"
)

// findNearMiss returns the options in a comment line that was meant as a
// directive, or "". What follows the word must be options and nothing else: a
// sentence that mentions one is prose.
func findNearMiss(text string) string {
	options := ""
	text = ornament.ReplaceAllString(text, "")
	if m := nearMiss.FindStringSubmatch(text); m != nil {
		options = m[1] + m[2]
	} else if m := misspelt.FindStringSubmatch(text); m != nil {
		word := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(m[1]))
		// RateLimiter and the like are words of a sentence, unless a colon follows.
		isWord := len(word) > len("ratelimit") && strings.HasPrefix(word, "ratelimit") && m[2] == "" && strings.HasPrefix(text, " ")
		if !isWord && nearest.Distance(word, "ratelimit") <= 2 || word == "rategen" {
			options = m[3]
		}
	}
	if options = strings.TrimSpace(options); isOptions(options) {
		return options
	}
	return ""
}

// findAtEnd returns the options of a directive that ends a comment line of something else, or
// "".
func findAtEnd(text string) string {
	if m := atEnd.FindStringSubmatch(text); m != nil && areKnown(m[1]) {
		return strings.TrimSpace(m[1])
	}
	return ""
}

// areKnown reports whether a text is options that exist, and nothing else.
func areKnown(text string) bool {
	if text = strings.TrimSpace(text); !strings.Contains(text, "=") || !isOptions(text) {
		return false
	}
	known := true
	report := func(token.Pos, string, ...any) *diag.Diagnostic { known = false; return &diag.Diagnostic{} }
	for _, a := range parse(Prefix+text, 1, report).options {
		known = known && optionNamed(a.name) != nil
	}
	return known
}

// isOptions reports whether a text is what may follow [Prefix]: options and
// nothing else. Blanks around an equal sign are overlooked, a blank in a value is
// not.
func isOptions(text string) bool {
	if text == "off" || importLine.MatchString(text) {
		return true
	}
	text, _ = strings.CutPrefix(text, "policy ")
	text, _ = strings.CutPrefix(text, "defaults ")
	for rest := strings.TrimLeft(text, " \t"); rest != ""; {
		name := optionName.FindString(rest)
		value, ok := strings.CutPrefix(strings.TrimLeft(rest[len(name):], " \t"), "=")
		if name == "" || !ok {
			return false
		}
		value = strings.TrimLeft(value, " \t")
		end := valueEnd(value)
		if end <= 0 {
			return false
		}
		rest = strings.TrimLeft(value[end:], " \t")
	}
	return text != ""
}

// isSound reports whether a line with these options would be a directive
// without errors of its own.
func isSound(options string) bool {
	sound := true
	report := func(token.Pos, string, ...any) *diag.Diagnostic {
		sound = false
		return &diag.Diagnostic{}
	}
	d := parse(Prefix+options, 1, report)
	if sound && (d.policy || d.defaults) {
		return false // it belongs elsewhere
	}
	if sound && !d.Off && d.imports == nil {
		newSettings(d, onInterface, report)
	}
	return sound
}
