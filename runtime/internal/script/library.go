package script

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/lua"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// scriptNames are the names in package lua of the scripts that count by the
// algorithms.
var scriptNames = [terms.Algorithms]string{
	terms.LogZSet:        "zset",
	terms.LogPacked:      "packed",
	terms.Counter:        "counter",
	terms.LayeredCounter: "counter",
	terms.FixedWindow:    "fixed",
	terms.TokenBucket:    "bucket",
	terms.LeakyBucket:    "bucket",
	terms.Queue:          "bucket",
	terms.Permits:        "permits",
}

// scripts are the indices of these names in lua.Algorithms.
var scripts = func() (indices [terms.Algorithms]int) {
	for a, name := range scriptNames {
		if indices[a] = slices.Index(lua.Algorithms[:], name); indices[a] < 0 {
			panic(fmt.Sprintf("script: algorithm %d has no script %q", a, name))
		}
	}
	return indices
}()

// A text is a Lua script: what it knows, and the hash that Redis knows it by. The source
// is made whenever a server has to be told it, which is rare, since scripts that mix
// algorithms are long and there may be many.
type text struct {
	set    uint
	hash   string
	change func(string) string // or nil
}

// source returns the text itself.
func (t *text) source() string {
	source := lua.Take(t.set)
	if t.change != nil {
		source = t.change(source)
	}
	return source
}

// A Library holds the scripts for sets of algorithms, each made when it is first
// needed. How many it has is bounded, for on most servers each stays in the memory of
// Redis: programs whose trips mix many algorithms would otherwise get one for every
// mixture that ever occurs. Zero Libraries share the scripts of package lua.
type Library struct {
	texts [2 * lua.One]atomic.Pointer[text]

	mu    sync.Mutex // held to make a script
	mixed int        // scripts of several algorithms

	// Change, if not nil, changes every script, for tests.
	Change func(string) string
	// Wide gives every set but those of one call a script that knows everything, for
	// tests.
	Wide bool
}

var shared Library

// maxMixed is how many scripts of several algorithms there may be. Every other mixture
// has the script that knows all of them.
const maxMixed = 32

// all are the bits of all algorithms.
const all = 1<<len(lua.Algorithms) - 1

// text returns a script for a set, see lua.Take: one that knows no more than it needs,
// or one that knows everything.
func (l *Library) text(set uint) *text {
	if l.Change == nil && !l.Wide {
		l = &shared
	}
	if t := l.texts[set].Load(); t != nil {
		return t
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.texts[set].Load(); t != nil {
		return t
	}
	switch several := bits.OnesCount(set&all) > 1; {
	case l.Wide && set&lua.One == 0, several && l.mixed == maxMixed:
		l.texts[set].Store(l.made(wide(set)))
	case several:
		l.mixed++
	}
	return l.made(set)
}

// wide returns what a script knows that can stand for all sets of the same operation.
func wide(set uint) uint {
	if operation := set & (lua.Settle | lua.Renew | lua.Hold); operation != 0 {
		return all | lua.Block | operation
	}
	return all | lua.Block | lua.Several
}

// made returns the script of exactly a set. It is made if there is none yet.
func (l *Library) made(set uint) *text {
	if t := l.texts[set].Load(); t != nil {
		return t
	}
	t := &text{set: set, change: l.Change}
	t.hash = redis.NewScript(t.source()).Hash()
	l.texts[set].Store(t)
	return t
}
