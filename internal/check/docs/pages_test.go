package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/check/docs"
	"github.com/rategen/rategen/internal/testkit/limittest"
)

const root = "../../.."

// pages returns all pages of the documentation by their paths from the root.
func pages(t *testing.T) map[string]*docs.Page {
	t.Helper()
	paths := []string{"bench/README.md", "llms.txt"}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "bench/results/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 && pattern != "docs/*/*.md" {
			t.Fatal("no pages", pattern, err)
		}
		for _, path := range found {
			path, err := filepath.Rel(root, path)
			limittest.OK(t, err)
			paths = append(paths, filepath.ToSlash(path))
		}
	}
	pages := map[string]*docs.Page{}
	for _, path := range paths {
		pages[path] = page(t, path)
	}
	return pages
}

func page(t *testing.T, path string) *docs.Page {
	t.Helper()
	p, err := docs.Read(filepath.Join(root, path))
	limittest.OK(t, err)
	return p
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	limittest.OK(t, err)
	return string(text)
}

// README.md convinces within 500 words, up to the first heading that a reader may skip,
// and has at most 900.
func TestReadmeIsShort(t *testing.T) {
	text := content(t, "README.md")
	first, _, _ := strings.Cut(text, "\n## ")
	for _, part := range []struct {
		text string
		most int
	}{{first, 500}, {text, 900}} {
		if n := len(strings.Fields(part.text)); n > part.most {
			t.Errorf("README.md has %d words, and should have at most %d: move some to a page of docs", n, part.most)
		}
	}
}

// The documentation has at most 22 pages and, with ARCHITECTURE.md, CONTRIBUTING.md and the
// decisions, 28,000 words: what blanks divide, code and tables included.
func TestDocumentationIsShort(t *testing.T) {
	count, words := 0, 0
	for path := range pages(t) {
		name, ok := strings.CutPrefix(path, "docs/")
		if !ok && path != "ARCHITECTURE.md" && path != "CONTRIBUTING.md" {
			continue
		}
		if ok && name != "README.md" && !strings.Contains(name, "/") {
			count++
		}
		words += len(strings.Fields(content(t, path)))
	}
	if count > 22 || words > 28_000 {
		t.Errorf("docs has %d pages and %d words, and should have at most 22 and 28,000: tell each fact once", count, words)
	}
}

// README.zh-CN.md has the headings, the code, the links and the options of
// README.md.
func TestTranslation(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|")
	shape := func(path string) (s struct {
		Levels  []int // of headings
		Blocks  []docs.Block
		Targets map[string]bool // of links
		Options []string
	}) {
		p := page(t, path)
		for _, h := range p.Headings {
			s.Levels = append(s.Levels, h.Level)
		}
		for _, b := range p.Blocks {
			b.Line, b.Section = 0, ""
			s.Blocks = append(s.Blocks, b)
		}
		s.Targets = map[string]bool{}
		for _, l := range p.Links {
			s.Targets[l.Target] = true
		}
		delete(s.Targets, "README.md")
		delete(s.Targets, "README.zh-CN.md")
		for _, m := range row.FindAllStringSubmatch(content(t, path), -1) {
			s.Options = append(s.Options, m[1])
		}
		return s
	}
	if diff := cmp.Diff(shape("README.md"), shape("README.zh-CN.md")); diff != "" {
		t.Errorf("(-English +Chinese):\n%s", diff)
	}
}

// Links within the repository lead to a file, and to a heading in it.
func TestLinks(t *testing.T) {
	pages := pages(t)
	for from, p := range pages {
		for _, l := range p.Links {
			if strings.Contains(l.Target, "://") {
				continue
			}
			file, anchor, _ := strings.Cut(l.Target, "#")
			path := from
			if file != "" {
				path = filepath.ToSlash(filepath.Join(filepath.Dir(from), file))
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s:%d: %s: there is no such file", from, l.Line, l.Target)
			} else if anchor != "" && (pages[path] == nil || !pages[path].Anchors()[anchor]) {
				t.Errorf("%s:%d: %s: there is no such heading", from, l.Line, l.Target)
			}
		}
	}
}

// Every page of docs is in the index, and in what language models read. Pages in
// directories below belong to one of them.
func TestIndex(t *testing.T) {
	for index, dir := range map[string]string{"docs/README.md": "", "llms.txt": "docs/"} {
		listed := map[string]bool{}
		for _, l := range page(t, index).Links {
			listed[l.Target] = true
		}
		for path := range pages(t) {
			if name, ok := strings.CutPrefix(path, "docs/"); ok && name != "README.md" && !strings.Contains(name, "/") && !listed[dir+name] {
				t.Errorf("%s does not list %s", index, name)
			}
		}
	}
}
