package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/internal/testkit/scratch"
)

// optionTableFile is the page that has the table of options, between the
// comments <!-- options --> and <!-- /options -->.
const optionTableFile = "../../docs/directive.md"

var update = flag.Bool("update", false, "rewrite the options in the manual and in "+optionTableFile)

// The manual and the table of options say what the generator's own rows say.
// go generate rewrites both.
func TestOptions(t *testing.T) {
	for _, page := range []struct{ path, start, end, want string }{
		{"doc.go", "The options are:\n\n", "\n\nThe name and the default prefix", manualOptions()},
		{optionTableFile, "<!-- options -->\n\n", "\n\n<!-- /options -->", tableOptions()},
	} {
		content, err := os.ReadFile(page.path)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, started := strings.Cut(string(content), page.start)
		got, after, ended := strings.Cut(rest, page.end)
		if !started || !ended {
			t.Fatalf("%s has no options between %q and %q", page.path, page.start, page.end)
		}
		if *update {
			scratch.Write(t, page.path, before+page.start+page.want+page.end+after)
		} else if diff := cmp.Diff(page.want, got); diff != "" {
			t.Errorf("%s: run go generate (-want +got):\n%s", page.path, diff)
		}
	}
}

// manualOptions writes the options as a list of a package comment.
func manualOptions() string {
	var items []string
	for _, o := range generator.Options() {
		text := fmt.Sprintf("%s=%s: %s (default: %s)", o.Name, o.Value, o.Doc, o.Default)
		items = append(items, printed.Filled(strings.ReplaceAll(text, "`", ""), "  - ", "    ", 79))
	}
	return strings.Join(items, "\n")
}

// tableOptions writes the options as a table in Markdown.
func tableOptions() string {
	rows := []string{"| option | value | without it |", "|---|---|---|"}
	for _, o := range generator.Options() {
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", o.Name, o.Doc, o.Default))
	}
	return strings.Join(rows, "\n")
}
