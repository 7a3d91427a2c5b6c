package crossing

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
)

var documentScope = &scope{window: memoryScope.window, steps: memoryScope.steps, leases: true}

// TestDocument plays histories as the documents that they are, and wants the same answers.
func TestDocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history.txt")
	programs := rapid.Custom(documentScope.draw).Filter(func(p *program) bool {
		open := func(r *runtime.Rule) bool { // who is first of those that wait or are closed out, and when a load is looked at
			return r.Wait > 0 && r.Algorithm != runtime.LeakyBucket || r.Adaptive != nil
		}
		return !p.Closes && !slices.ContainsFunc(p.Rules, open) && !slices.ContainsFunc(p.Steps, func(s step) bool {
			c, is := s.Do.(call)
			return is && (c.Meter != nil && c.Cancel > 0 || c.Beside > 0 && p.Cap != nil)
		})
	})
	for i := range 300 {
		p := programs.Example(i)
		synctest.Test(t, func(t *testing.T) {
			h := run(p, documentScope, newMemory(p))
			if err := os.WriteFile(file, []byte(h.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		})
		documents.RunPrograms(t, file, nil)
		if t.Failed() {
			text, _ := os.ReadFile(file)
			t.Fatalf("example %d:\n%s", i, text)
		}
	}
}
