package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// turns are turns of phrase that readers have stumbled over, by what to write in their place.
var turns = map[string]*regexp.Regexp{
	"a subject that begins with what: name the thing": regexp.MustCompile(`(?:^|[.:;] )What [a-z]`),
	"a sentence that begins with its object: begin with the subject": regexp.MustCompile(
		`(?:^|\. )(?:Of|By) (?:a|an|the|it|its|them|these|this|that|several|overlapping|all|what|who)\b`),
	"of who":                    regexp.MustCompile(`\bof who\b`),
	"but for: except":           regexp.MustCompile(`\bbut for\b`),
	"is no X: is not a":         regexp.MustCompile(`(?i)\b(?:it|that|this|which|who|[a-z]+s) (?:is|are) no (?:[a-km-z]|l(?:[a-np-z]|o[a-mo-z]))`),
	"give back: refund, return": regexp.MustCompile(`\b(?:give|gives|gave|given|giving) back\b`),
	"go out: outgoing":          regexp.MustCompile(`\b(?:go|goes|went|going) out\b`),
	"over all: across":          regexp.MustCompile(`\bover all (?:\w+ )?(?:replicas|processes|regions)\b`),
	"somebody's way":            regexp.MustCompile(`\b[a-z]+['’]s way\b`),
}

// The pages use the direct words that a stranger expects, outside of code, headings
// and links.
func TestDirectWords(t *testing.T) {
	for path := range pages(t) {
		if strings.HasPrefix(path, "bench/") || path == "CHANGELOG.md" || path == "README.zh-CN.md" {
			continue
		}
		for _, text := range prose(content(t, path)) {
			for name, turn := range turns {
				if found := turn.FindString(text); found != "" {
					t.Errorf("%s: %q in %q: %s", path, found, text, name)
				}
			}
		}
	}
}

var (
	fence = regexp.MustCompile("(?ms)^```.*?^```$")
	named = regexp.MustCompile("`[^`\n]*`|\\[[^\\]]*\\]\\([^)]*\\)")
	edge  = regexp.MustCompile(`(?m)\n\n|\n(?:- |\d+\. |\| )| \| |^#.*$`)
)

// prose returns the paragraphs, items and cells of a page, without code, headings and links.
func prose(page string) (texts []string) {
	page = named.ReplaceAllString(fence.ReplaceAllString(page, ""), "x")
	for _, text := range edge.Split(page, -1) {
		text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "**", "")
		if text = strings.TrimLeft(text, "-| "); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}
