// Package directive reads //ratelimit: lines. It finds them in parsed files, cuts
// them into options and parses these. It reports lines that look like directives
// and have no effect.
package directive

import (
	"go/token"
	"regexp"
	"strconv"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
)

// Prefix starts every directive, with no blank before or in it.
const Prefix = "//ratelimit:"

// A Directive is one //ratelimit: line, cut into its options but not yet
// understood.
type Directive struct {
	Pos      token.Pos // of the first slash
	end      token.Pos // behind the last option
	Off      bool      // //ratelimit:off
	imports  *Import
	policy   bool // //ratelimit:policy
	defaults bool // //ratelimit:defaults
	options  []assignment
	Settings *Settings // what the options mean; nil if off or imports is set
}

// An Import is a //ratelimit:import line.
type Import struct {
	Pos  token.Pos // of the path
	Name string    // "" for the package's own
	Path string
}

// An assignment is one name=value of a directive.
type assignment struct {
	name  string
	pos   token.Pos // of the name
	value Value
}

// A Value is the text of an option's value. Quotes around the whole of it are
// already gone.
type Value struct {
	Pos  token.Pos // of the first byte of text
	Text string
	// exact says that byte i of text stands i bytes after pos. It is false
	// for a value in double quotes that holds escapes.
	Exact bool
}

// At returns the position of byte i of the value.
func (v Value) At(i int) token.Pos {
	if !v.Exact {
		return v.Pos
	}
	return v.Pos + token.Pos(min(i, len(v.Text)))
}

// Tail returns the text of a value from byte i, or "" if it is not written
// like that in the source file.
func (v Value) Tail(i int) string {
	if !v.Exact {
		return ""
	}
	return v.Text[min(i, len(v.Text)):]
}

var (
	optionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*`)
	importLine = regexp.MustCompile(`^import[ \t]+(?:([\pL_][\pL\pN_]*)[ \t]+)?("[^"]*"|` + "`[^`]*`" + `)[ \t]*$`)
)

// parse cuts the text of a comment that starts with directivePrefix
// into options. It reports what cannot be cut and returns the rest, or nil if
// nothing can be made of the line.
func parse(text string, pos token.Pos, report diag.Func) *Directive {
	start := pos + token.Pos(len(Prefix))
	rest := strings.TrimRight(text[len(Prefix):], " \t\r")
	d := &Directive{Pos: pos, end: start + token.Pos(len(rest))}
	offset := func(tail string) token.Pos { // the place of what is left of rest
		return start + token.Pos(len(rest)-len(tail))
	}
	line := rest
	if line == "" {
		report(pos, "directive without options: write at least one, such as max=100")
		return d
	}
	if line[0] == ' ' || line[0] == '\t' {
		tail := strings.TrimSpace(line)
		e := report(start, "blank after the colon: write %s%s", Prefix, tail).Mark(line)
		if isOptions(tail) {
			e.Replace(start, len(line)-len(tail), "", "remove the blank after the colon")
		}
		return d
	}
	if line == "off" {
		d.Off = true
		return d
	}
	if strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "import\t") {
		m := importLine.FindStringSubmatchIndex(line)
		if m == nil {
			report(start, `malformed import: write %simport "path"`, Prefix)
			return nil
		}
		d.imports = &Import{Pos: offset(line[m[4]:])}
		if m[2] >= 0 {
			d.imports.Name = line[m[2]:m[3]]
		}
		d.imports.Path, _ = strconv.Unquote(line[m[4]:m[5]])
		return d
	}
	switch word, rest, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " "); word {
	case "policy":
		d.policy, line = true, line[len(line)-len(rest):]
	case "defaults":
		d.defaults, line = true, line[len(line)-len(rest):]
	}
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" {
			return d
		}
		at := offset(line)
		name := optionName.FindString(line)
		if name == "" || !strings.HasPrefix(line[len(name):], "=") {
			line = reportMalformed(line, at, report)
			continue
		}
		line = line[len(name)+1:]
		end := valueEnd(line)
		if end < 0 {
			report(offset(line), "value of option %q has a quote or bracket that is never closed: %s", name, line).Mark(line)
			return d
		}
		if end == 0 {
			report(at, "option %q has no value: write %s=value, with no blank after the equal sign", name, name).Mark(name + "=")
			continue
		}
		v, ok := unquoted(line[:end], offset(line))
		if !ok {
			report(offset(line), "value of option %q is not a valid Go string: %s", name, line[:end]).Mark(line[:end])
		} else {
			d.options = append(d.options, assignment{name: name, pos: at, value: v})
		}
		line = line[end:]
	}
}

// reportMalformed says what is wrong with an option that does not read
// name=value and returns the line after it.
func reportMalformed(line string, at token.Pos, report diag.Func) string {
	end := strings.IndexAny(line, " \t")
	if end < 0 {
		end = len(line)
	}
	word, rest := line[:end], strings.TrimLeft(line[end:], " \t")
	switch {
	case optionName.FindString(word) != word:
		report(at, "malformed option %q: write name=value, with quotes around a value that has blanks", word).Mark(word)
	case word == "off":
		report(at, "off takes no options and stands alone: %soff", Prefix).Mark(word)
	case strings.HasPrefix(rest, "="):
		report(at, "option %q has a blank before the equal sign: write %s=value", word, word).
			Mark(line[:len(line)-len(rest)+1]).Replace(at+token.Pos(len(word)), len(line)-len(word)-len(strings.TrimLeft(rest[1:], " \t")), "=", "remove the blanks around the equal sign")
		rest = strings.TrimLeft(rest[1:], " \t")
		if end := valueEnd(rest); end > 0 {
			rest = rest[end:]
		}
	default:
		report(at, "option %q has no value: write %s=value, with quotes around a value that has blanks", word, word).Mark(word)
	}
	return rest
}

// unquoted takes the quotes off a value that is one Go string as a whole.
func unquoted(text string, pos token.Pos) (Value, bool) {
	if text[0] != '"' && text[0] != '`' || QuoteEnd(text) != len(text) {
		return Value{Pos: pos, Text: text, Exact: true}, true
	}
	inner, err := strconv.Unquote(text)
	return Value{Pos: pos + 1, Text: inner, Exact: inner == text[1:len(text)-1]}, err == nil
}

// valueEnd returns where the value that starts s ends: at the first blank
// outside quotes and brackets. It is -1 if one of these is never closed.
func valueEnd(s string) int { return cut(s, " \t") }

// cut returns the index of the first byte of s that is one of stops and
// stands outside quotes and brackets, or len(s). It is -1 if a quote or
// bracket is never closed.
func cut(s, stops string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if depth == 0 && strings.IndexByte(stops, c) >= 0 {
			return i
		}
		if c == '"' || c == '`' || c == '\'' {
			n := QuoteEnd(s[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
		} else if c == '(' || c == '[' || c == '{' {
			depth++
		} else if (c == ')' || c == ']' || c == '}') && depth > 0 {
			depth--
		}
	}
	if depth > 0 {
		return -1
	}
	return len(s)
}

// QuoteEnd returns the length of the Go string or rune that starts s, or -1.
func QuoteEnd(s string) int {
	for i := 1; i < len(s); i++ {
		if s[i] == '\\' && s[0] != '`' {
			i++
		} else if s[i] == s[0] {
			return i + 1
		}
	}
	return -1
}
