package picture

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"testing/synctest"
)

var update = flag.Bool("update", false, "write the pictures in docs")

// TestPicture wants the committed picture to be what the algorithms do.
func TestPicture(t *testing.T) {
	lanes := lanes()
	for _, l := range lanes {
		synctest.Test(t, func(t *testing.T) {
			if err := l.run(traffic()); err != nil {
				t.Fatal(err)
			}
		})
	}
	same(t, "../../../docs/algorithms.svg", "algorithms", algorithms(lanes))
}

// TestSpeedPicture wants the committed bars to be as long as was measured.
func TestSpeedPicture(t *testing.T) {
	page, err := os.ReadFile("../../results/callers.md")
	if err != nil {
		t.Fatal(err)
	}
	bars := bars()
	if err := read(string(page), bars); err != nil {
		t.Fatal(err)
	}
	same(t, "../../../docs/speed.svg", "speed", bars)
}

// same compares a picture with the committed one, which -update writes.
func same(t *testing.T, file, name string, data any) {
	t.Helper()
	got, err := draw(name, data)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is another picture; look at what go test ./cost/picture -update makes of it", file)
	}
}
