package page

import (
	"os"
	"path/filepath"
	"testing"
)

func TestInsert(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n<!-- measured -->\nold\n<!-- /measured -->\nafter\n")
	for range 2 { // what was inserted can be replaced
		if err := Insert(file, []byte("new\n\n")); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\n<!-- measured -->\n\nnew\n\n<!-- /measured -->\nafter\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	write("no marks\n")
	if err := Insert(file, nil); err == nil {
		t.Error("a page without marks is written to")
	}
}
