package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// turns are turns of phrase that readers have stumbled over, each with sentences that have it
// and others that look alike.
var turns = []struct {
	name     string
	pattern  *regexp.Regexp
	bad, not []string
}{
	{
		"a subject that begins with what: name the thing", regexp.MustCompile(`(?:^|[.:;] )What [a-z]`),
		[]string{"What is given back is there.", "It ends. What a process reserves stays."},
		[]string{"A method returns what is left.", "Which max?"},
	},
	{
		"a sentence that begins with its object: begin with the subject", regexp.MustCompile(`(?:^|\. )(?:Of|By) (?:a|an|the|it|its|them|these|this|that|several|overlapping|all|what|who)\b`),
		[]string{"Of a field 16 lines are read.", "It ends. By it adapters learn."},
		[]string{"By default a call goes on.", "A part of the key."},
	},
	{"of who", regexp.MustCompile(`\bof who\b`), []string{"the key of who has no name"}, []string{"a list of whole keys"}},
	{"but for: except", regexp.MustCompile(`\bbut for\b`), []string{"nothing, but for the block"}, []string{"but forever"}},
	{
		"is no X: is not a", regexp.MustCompile(`(?i)\b(?:it|that|this|which|who|[a-z]+s) (?:is|are) no (?:[a-km-z]|l(?:[a-np-z]|o[a-mo-z]))`),
		[]string{"It is no lock.", "an entry that is no address"},
		[]string{"there is no room", "permits are no longer renewed"},
	},
	{"give back: refund, return", regexp.MustCompile(`\b(?:give|gives|gave|given|giving) back\b`), []string{"what is given back"}, []string{"given a name"}},
	{"go out: outgoing", regexp.MustCompile(`\b(?:go|goes|went|going) out\b`), []string{"calls that go out"}, []string{"go outside"}},
	{"over all: across", regexp.MustCompile(`\bover all (?:\w+ )?(?:replicas|processes|regions)\b`), []string{"one limit over all replicas"}, []string{"over all of them"}},
	{"somebody's way", regexp.MustCompile(`\b[a-z]+['’]s way\b`), []string{"a call's way to Redis"}, []string{"on the way"}},
}

// The pages use the direct words that a stranger expects, outside of code, headings
// and links.
func TestDirectWords(t *testing.T) {
	for _, turn := range turns {
		for _, text := range turn.bad {
			if !turn.pattern.MatchString(text) {
				t.Errorf("%s: is not found in %q", turn.name, text)
			}
		}
		for _, text := range turn.not {
			if turn.pattern.MatchString(text) {
				t.Errorf("%s: is found in %q", turn.name, text)
			}
		}
	}
	for path := range pages(t) {
		if strings.HasPrefix(path, "bench/") || path == "CHANGELOG.md" || path == "README.zh-CN.md" {
			continue
		}
		for _, text := range prose(content(t, path)) {
			for _, turn := range turns {
				if found := turn.pattern.FindString(text); found != "" {
					t.Errorf("%s: %q in %q: %s", path, found, text, turn.name)
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
