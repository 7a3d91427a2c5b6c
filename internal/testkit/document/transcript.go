package document

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Transcripts plays the transcripts that match a pattern, side by side. A transcript has steps, which
// are lines after $ and take what stands below them after >; and below a step what is answered, which
// is lines that begin with neither of these. Remarks are lines after #. Begin returns what answers the
// steps of one. With -update the answers become those that are given.
func Transcripts(t *testing.T, pattern string, begin func(t *testing.T, name string) (answer func(step, input string) string)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts are %s: %v", pattern, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Transcript(t, file, begin(t, name))
		})
	}
}

// A Mask has a text stand for what differs from run to run.
type Mask struct {
	hidden *regexp.Regexp
	text   string
}

// Hide returns a mask for what an expression finds.
func Hide(expression, text string) Mask { return Mask{regexp.MustCompile(expression), text} }

// Masked returns an answer behind masks, one after the other.
func Masked(said string, masks []Mask) string {
	for _, m := range masks {
		said = m.hidden.ReplaceAllString(said, m.text)
	}
	return said
}

// Transcript plays one.
func Transcript(t *testing.T, file string, answer func(step, input string) string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for lines := strings.SplitAfter(string(text), "\n"); len(lines) > 0; {
		line, input := lines[0], ""
		lines = lines[1:]
		step, is := strings.CutPrefix(line, "$ ")
		if is || line == "\n" || strings.HasPrefix(line, "#") {
			got.WriteString(line)
		}
		if !is {
			continue
		}
		for strings.HasPrefix(lines[0], "> ") {
			got.WriteString(lines[0])
			input += lines[0][len("> "):]
			lines = lines[1:]
		}
		if said := answer(strings.TrimSpace(step), input); said != "" {
			got.WriteString(strings.ReplaceAll(strings.TrimSuffix(said, "\n")+"\n", "\n\n", "\n⏎\n"))
		}
	}
	if *update && !t.Failed() {
		err = os.WriteFile(file, []byte(got.String()), 0o644)
	} else if diff := cmp.Diff(string(text), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
	if err != nil {
		t.Error(err)
	}
}
