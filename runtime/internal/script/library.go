package script

import (
	"fmt"
	"slices"
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

// A text is a Lua script and the hash that Redis knows it by.
type text struct{ source, hash string }

// A Library holds the scripts for all sets of algorithms, each made when it is
// first needed. The zero Library makes them of package lua.
type Library struct {
	texts [2 * lua.One]atomic.Pointer[text]

	// Change, if not nil, changes every script, for tests.
	Change func(string) string
}

// text returns the script for a set, see lua.Take.
func (l *Library) text(set uint) *text {
	if t := l.texts[set].Load(); t != nil {
		return t
	}
	source := lua.Take(set)
	if l.Change != nil {
		source = l.Change(source)
	}
	t := &text{source, redis.NewScript(source).Hash()}
	l.texts[set].Store(t)
	return t
}
