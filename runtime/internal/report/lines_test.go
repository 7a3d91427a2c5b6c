package report

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// docs/troubleshooting.md says what to do about the code of every line, once, and about
// no other.
func TestCodesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Log lines\n")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\|").FindAllStringSubmatch(section, -1) {
		for code := range strings.SplitSeq(row[1], ", ") {
			documented[strings.Trim(code, "`")]++
		}
	}
	written := map[string]int{}
	for _, l := range lines {
		written[l.code]++
	}
	if diff := cmp.Diff(written, documented); diff != "" {
		t.Errorf("codes (-lines +docs/troubleshooting.md):\n%s", diff)
	}
	if codes := slices.Collect(maps.Values(written)); len(codes) < 10 || slices.Max(codes) > 1 {
		t.Errorf("a code belongs to several lines: %v", written)
	}
}
