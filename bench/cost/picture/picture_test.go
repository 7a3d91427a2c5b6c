package picture

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"testing/synctest"
)

var update = flag.Bool("update", false, "write docs/algorithms.svg")

const file = "../../../docs/algorithms.svg"

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
	got := draw(lanes)
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
		t.Errorf("%s is not what the algorithms do; look at what go test ./cost/picture -update makes of it", file)
	}
}
