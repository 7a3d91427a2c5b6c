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
	// Only calendar and reserved have former periods.
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
	const most = 106 << 16                                         // bytes of all of them
	l := Library{Change: func(text string) string { return text }} // shares nothing
	known, size := map[string]uint{}, 0                            // the algorithms of each script
	for _, set := range requested() {
		text := l.text(set)
		if again := l.text(set); again != text {
			t.Fatalf("set %b has two scripts", set)
		}
		algorithms, met := known[text.hash]
		if !met {
			source := text.source()
			size += len(source)
			for i, name := range lua.Algorithms {
				if strings.Contains(source, name) {
					algorithms |= 1 << i
				}
			}
			known[text.hash] = algorithms
		}
		if wanted := set & (1<<len(lua.Algorithms) - 1); set&lua.Operations != lua.One && wanted&^algorithms != 0 {
			t.Fatalf("the script of set %b does not know algorithms %b", set, wanted&^algorithms)
		}
	}
	pairs := map[*text]bool{}
	for _, ahead := range requested() {
		if ahead&lua.Operations == lua.Settle && len(pairs) <= maxPairs {
			for i := range lua.Algorithms {
				if pair := l.pair(ahead, 1<<i|lua.One); pair != nil && !pairs[pair] {
					pairs[pair] = true
					size += len(pair.source())
				}
			}
		}
	}
	if len(pairs) != maxPairs {
		t.Errorf("%d pairs, want %d at most", len(pairs), maxPairs)
	}
	t.Logf("%d scripts of %d bytes for %d sets", len(known), size, len(requested()))
	if size > most {
		t.Errorf("%d scripts of %d bytes for %d sets, want at most %d", len(known), size, len(requested()), most)
	}
	if rare := l.text(allAlgorithms | lua.Settle); rare.source() != lua.Take(allAlgorithms|lua.Block|lua.Settle) {
		t.Error("a rare mixture has no script of all algorithms that settles")
	}
}
