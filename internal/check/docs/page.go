// Package docs reads the pages of the documentation, for tests that they say
// what is true: links lead somewhere, Go code compiles, commands exist. It would find a page that
// shows an option which is gone, or a figure that was measured anew.
package docs

import (
	"os"
	"regexp"
	"strings"
	"unicode"
)

// A Page is a page in Markdown.
type Page struct {
	Headings []Heading
	Blocks   []Block
	Links    []Link
	Code     []string // spans of code within a line
}

// A Heading is a line that begins with #.
type Heading struct {
	Level int
	Text  string
	Slug  string // by which a link names it
}

// A Block is a fenced block of code.
type Block struct {
	Language string
	Section  string // the last heading of level 2 above it
	Name     string // of the file, if the line **`name`** stands above; or ""
	Text     string
	Line     int // of its first line
	Closed   bool
}

// A Link is the target of a link or picture.
type Link struct {
	Text, Target string
	Line         int
}

var (
	named = regexp.MustCompile("^\\*\\*`([a-z_]+\\.[a-z]+)`\\*\\*$")
	link  = regexp.MustCompile(`\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\(([^()\s]+)\)`)
	code  = regexp.MustCompile("`([^`]+)`")
)

// Read reads a page.
func Read(path string) (*Page, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(string(content)), nil
}

// Parse parses a page.
func Parse(content string) *Page {
	p := new(Page)
	slugs := map[string]int{}
	var block *Block
	name, section := "", ""
	for i, line := range strings.Split(content, "\n") {
		if block != nil {
			if strings.HasPrefix(line, "```") {
				block.Closed = true
				p.Blocks = append(p.Blocks, *block)
				block = nil
			} else {
				block.Text += line + "\n"
			}
			continue
		}
		if language, ok := strings.CutPrefix(line, "```"); ok {
			block = &Block{Language: language, Section: section, Name: name, Line: i + 2}
			name = ""
			continue
		}
		if m := named.FindStringSubmatch(line); m != nil {
			name = m[1]
		}
		if text, ok := strings.CutPrefix(line, "#"); ok {
			rest := strings.TrimLeft(text, "#")
			p.heading(1+len(text)-len(rest), strings.TrimSpace(rest), slugs)
			if h := p.Headings[len(p.Headings)-1]; h.Level == 2 {
				section = h.Text
			}
			continue
		}
		for _, m := range code.FindAllStringSubmatch(line, -1) {
			p.Code = append(p.Code, m[1])
		}
		for _, m := range link.FindAllStringSubmatch(line, -1) {
			p.Links = append(p.Links, Link{Text: m[1], Target: m[2], Line: i + 1})
		}
	}
	if block != nil {
		p.Blocks = append(p.Blocks, *block)
	}
	return p
}

// heading adds a heading. The second of a slug ends in -1, as on GitHub.
func (p *Page) heading(level int, text string, slugs map[string]int) {
	slug := Slug(text)
	if n := slugs[slug]; n > 0 {
		slugs[slug]++
		slug += "-" + string(rune('0'+n))
	} else {
		slugs[slug] = 1
	}
	p.Headings = append(p.Headings, Heading{Level: level, Text: text, Slug: slug})
}

// Slug returns the anchor of a heading, as GitHub makes it.
func Slug(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' {
			b.WriteRune(r)
		} else if r == ' ' {
			b.WriteByte('-')
		}
	}
	return b.String()
}

// Anchors returns the names of the places that a link may lead to.
func (p *Page) Anchors() map[string]bool {
	anchors := map[string]bool{}
	for _, h := range p.Headings {
		anchors[h.Slug] = true
	}
	return anchors
}
