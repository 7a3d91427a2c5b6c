package main

import (
	"strings"
	"testing"

	"github.com/rategen/rategen/lua"
)

func TestPrint(t *testing.T) {
	t.Parallel()
	for i, name := range lua.Algorithms {
		for flags, set := range map[string]uint{"": lua.One, "-batch ": 0, "-block ": lua.One | lua.Block, "-batch -past ": lua.Past} {
			var out strings.Builder
			if err := run(strings.Fields(flags+name), &out); err != nil || out.String() != lua.Take(set|1<<i) {
				t.Errorf("%s%s prints another script (%v)", flags, name, err)
			}
		}
	}
	for _, args := range []string{"", "bukcet", "bucket fixed"} {
		if err := run(strings.Fields(args), new(strings.Builder)); err == nil || !strings.Contains(err.Error(), "bucket, permits") {
			t.Errorf("%q: %v", args, err)
		}
	}
}
