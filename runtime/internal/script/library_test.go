package script

import (
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/lua"
)

// requested returns all sets that a request can have.
func requested() (sets []uint) {
	for algorithms := uint(1); algorithms < 1<<len(lua.Algorithms); algorithms++ {
		for _, block := range []uint{0, lua.Block} {
			for _, operation := range []uint{0, lua.Several, lua.Settle, lua.Renew, lua.Hold | lua.Block, lua.One} {
				if operation != lua.One || bits.OnesCount(algorithms) == 1 {
					sets = append(sets, algorithms|block|operation)
				}
			}
		}
	}
	// Only calendar and reserved have former periods, and all mixtures with them are one.
	calendar, log := uint(1)<<slices.Index(lua.Algorithms[:], "calendar"), uint(1)
	for _, algorithms := range []uint{calendar, lua.Reserved, calendar | log, lua.Reserved | log, calendar | lua.Reserved} {
		for _, operation := range []uint{0, lua.Several, lua.Settle, lua.Renew, lua.Hold | lua.Block, lua.One} {
			if operation != lua.One || bits.OnesCount(algorithms) == 1 {
				sets = append(sets, algorithms|lua.Past|operation, algorithms|lua.Past|lua.Block|operation)
			}
		}
	}
	return sets
}

// TestLibraryIsBounded asks for the scripts of every mixture of algorithms. They
// stay few and small, and each knows what it was asked for.
func TestLibraryIsBounded(t *testing.T) {
	const most = 15 << 18                                          // bytes of all of them
	l := Library{Change: func(text string) string { return text }} // shares nothing
	known, size := map[string]bool{}, 0
	for _, set := range requested() {
		text := l.text(set)
		if again := l.text(set); again != text {
			t.Fatalf("set %b has two scripts", set)
		}
		source := text.source()
		for i, name := range lua.Algorithms {
			if set&(1<<i) != 0 && set&lua.Operations != lua.One && !strings.Contains(source, name) {
				t.Fatalf("the script of set %b does not know %s", set, name)
			}
		}
		if !known[text.hash] {
			known[text.hash] = true
			size += len(source)
		}
	}
	t.Logf("%d scripts of %d bytes for %d sets", len(known), size, len(requested()))
	if size > most {
		t.Errorf("%d scripts of %d bytes for %d sets, want at most %d", len(known), size, len(requested()), most)
	}
	if rare := l.text(all | lua.Settle); rare.source() != lua.Take(all|lua.Block|lua.Settle) {
		t.Error("a rare mixture has no script of all algorithms that settles")
	}
}
