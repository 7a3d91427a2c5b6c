package directive

import (
	"regexp"
	"strings"
)

// nearMiss recognises a comment line that was meant as a directive: the word,
// then either a colon and something like an option, or an option of ours.
var nearMiss = regexp.MustCompile(`^\s*[@+]?(?i:rate[-_]?limit)(?:` +
	`\s*:\s*([A-Za-z]\w*\s*=\s*\S.*|off\s*$|import\s+["` + "`" + `].*)|` +
	`\s+((?:` + strings.Join(optionNames, "|") + `)=\S.*))`)

// misspelt recognises a comment line that is a directive but for its first
// word or the colon.
var misspelt = regexp.MustCompile(`^[ \t]*[@+]?(?:go:)?([A-Za-z][A-Za-z_-]{5,13})[ \t]*[:;,.]?[ \t]*((?:` + strings.Join(optionNames, "|") + `)=\S.*)`)

// findNearMiss returns the options in a comment line that was meant as a
// directive, or "".
func findNearMiss(text string) string {
	if m := nearMiss.FindStringSubmatch(text); m != nil {
		return strings.TrimSpace(m[1] + m[2])
	}
	if m := misspelt.FindStringSubmatch(text); m != nil {
		word := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(m[1]))
		if editDistance(word, "ratelimit") <= 2 || word == "rategen" {
			return strings.TrimSpace(m[2])
		}
	}
	return ""
}
