package directive

import (
	"bytes"
	"regexp"
	"strings"
)

// MayHold reports whether a file may have a directive or something like
// one, so that it is worth parsing. Most files of a program have neither, so
// this is quick rather than exact.
func MayHold(content []byte) bool {
	return mentionsWord(content) || mentionsMisspelt(content)
}

// mentionsWord looks for ratelimit, rate_limit, rate-limit or rate:limit in any case.
func mentionsWord(content []byte) bool {
	for _, tail := range [][]byte{[]byte("imit"), []byte("IMIT")} {
		for from := 0; ; {
			i := bytes.Index(content[from:], tail)
			if i < 0 {
				break
			}
			from += i + len(tail)
			if endsInWord(content[:from]) {
				return true
			}
		}
	}
	return false
}

func endsInWord(text []byte) bool {
	n := len(text) - len("limit")
	if n < 0 || !bytes.EqualFold(text[n:], []byte("limit")) {
		return false
	}
	if n > 0 && strings.IndexByte("-_:", text[n-1]) >= 0 {
		n--
	}
	return n >= len("rate") && bytes.EqualFold(text[n-len("rate"):n], []byte("rate"))
}

// mentionsMisspelt looks for line comments that may be misspelt directives. An
// equal sign is never far from their start.
func mentionsMisspelt(content []byte) bool {
	const near = 48
	for {
		i := bytes.Index(content, []byte("//"))
		if i < 0 {
			return false
		}
		content = content[i+2:]
		start := content[:min(near, len(content))]
		if end := bytes.IndexByte(start, '\n'); end >= 0 {
			start = start[:end]
		}
		if bytes.IndexByte(start, '=') >= 0 && misspelt.Match(content) {
			return true
		}
	}
}

// nearMiss recognises a comment line that was meant as a directive: the word,
// then either a colon and something like an option, or an option of ours.
var nearMiss = regexp.MustCompile(`^\s*[@+]?(?i:rate[-_:]?limit)(?:` +
	`\s*:\s*((?:(?:policy|defaults)\s+)?[A-Za-z]\w*\s*=\s*\S.*|off\s*$|import\s+["` + "`" + `].*)|` +
	`\s+((?:` + strings.Join(optionNames, "|") + `)=\S.*))`)

// ornament is what may stand before a directive in a comment: the third of three slashes,
// and the mark of a list.
var ornament = regexp.MustCompile(`^(?:/|[ \t]+[-*•][ \t]+)`)

// atEnd recognises a directive at the end of a comment line.
var atEnd = regexp.MustCompile(`[ \t](?://)?ratelimit:([A-Za-z]\S*=.*)$`)

// misspelt recognises a comment line that is a directive but for its first
// word or the colon.
var misspelt = regexp.MustCompile(`^[ \t]*[@+]?(?:go:)?([A-Za-z][A-Za-z_-]{5,13})[ \t]*([:;,.]?)[ \t]*((?:` + strings.Join(optionNames, "|") + `)=\S.*)`)
