package script

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rategen/rategen/lua"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

// A text is a Lua script: what it knows, and the hash that Redis knows it by. The source
// is made whenever a server has to be told it, which is rare, since scripts that mix
// algorithms are long and there may be many.
type text struct {
	set    uint
	ahead  uint // of a pair, the set that settles; 0: it is none
	hash   string
	change func(string) string // or nil
}

// source returns the text itself.
func (t *text) source() string {
	source := lua.Take(t.set)
	if t.ahead != 0 {
		source = "if string.sub(ARGV[1], -6) == 'settle' then\n" + lua.Take(t.ahead) + "else\n" + source + "end\n"
	}
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
	texts [lua.Sets]atomic.Pointer[text]
	pairs atomic.Pointer[[]*text]

	mu    sync.Mutex // held to make a script
	mixed int        // scripts of several algorithms

	// Change, if not nil, changes every script, for tests.
	Change func(string) string
	// Wide gives every set but those of one call a script that knows everything, for
	// tests.
	Wide bool
}

var shared Library

// maxMixed is how many scripts of several algorithms there may be. Every other mixture has the
// script that knows all of them.
const maxMixed = 32

// maxPairs is how many pairs there may be. What settles ahead of any other set comes with its text.
const maxPairs = 32

// allAlgorithms are the bits of all algorithms.
const allAlgorithms = 1<<len(lua.Algorithms) - 1

// text returns a script for a set, see lua.Take: one that knows no more than it needs,
// or one that knows everything.
func (l *Library) text(set uint) *text {
	if t := l.texts[set].Load(); t != nil {
		return t
	}
	if l.Change == nil && !l.Wide && l != &shared {
		t := shared.text(set)
		l.texts[set].Store(t)
		return t
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.texts[set].Load(); t != nil {
		return t
	}
	known, several := set, bits.OnesCount(set&allAlgorithms) > 1
	if l.Wide && set&lua.Operations != lua.One || several && l.mixed == maxMixed {
		known = widen(set)
	} else if several {
		l.mixed++
	}
	t := l.texts[known].Load()
	if t == nil {
		t = newText(known, 0, l.Change)
		l.texts[known].Store(t)
	}
	l.texts[set].Store(t)
	return t
}

// widen returns what a script knows that can stand for all sets of the same operation, whose
// terms have as many values.
func widen(set uint) uint {
	const others = allAlgorithms &^ (lua.Reserved | lua.Shares)
	all := others | set&(lua.Reserved|lua.Shares) | lua.Block
	if set&lua.Past != 0 {
		all |= lua.Reserved | lua.Past
	}
	switch operation := set & lua.Operations; operation {
	case lua.Settle, lua.Renew, lua.Hold:
		return all | operation
	}
	return all | lua.Several
}

func newText(set, ahead uint, change func(string) string) *text {
	t := &text{set: set, ahead: ahead, change: change}
	hash := sha1.Sum([]byte(t.source()))
	t.hash = hex.EncodeToString(hash[:])
	return t
}

// pair returns one script for a set that settles and one that comes behind it, so that a server
// knows either both or neither: what it gives back counts for what comes behind it whatever
// the server has forgotten. It returns nil if there are too many pairs.
func (l *Library) pair(ahead, set uint) *text {
	ahead, set = l.text(ahead).set, l.text(set).set
	all := l.pairs.Load()
	if t := findPair(all, ahead, set); t != nil {
		return t
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all = l.pairs.Load()
	t := findPair(all, ahead, set)
	if t != nil {
		return t
	}
	var more []*text
	if all != nil {
		more = slices.Clone(*all)
	}
	if len(more) == maxPairs {
		return nil
	}
	t = newText(set, ahead, l.Change)
	more = append(more, t)
	l.pairs.Store(&more)
	return t
}

func findPair(all *[]*text, ahead, set uint) *text {
	if all != nil {
		for _, t := range *all {
			if t.ahead == ahead && t.set == set {
				return t
			}
		}
	}
	return nil
}

// Load makes a server know the scripts that decide, settle and renew calls with one
// limit of some algorithms, by themselves, in batches and behind what settles. All go in one trip.
func (l *Library) Load(ctx context.Context, server rediswire.Server, limits []terms.Terms) error {
	texts := make(map[*text]bool)
	for i := range limits {
		set := uint(1) << scripts[limits[i].Algorithm]
		if limits[i].Block > 0 {
			set |= lua.Block
		}
		if limits[i].Keep > 0 || limits[i].Tells > 0 {
			set |= lua.Past
		}
		for _, t := range []*text{l.text(set), l.text(set | lua.One), l.text(set | lua.Settle),
			l.pair(set|lua.Settle, set), l.pair(set|lua.Settle, set|lua.One)} {
			texts[t] = true
		}
		if limits[i].Lapses() || limits[i].Ledger {
			texts[l.text(set|lua.Renew)] = true
		}
	}
	delete(texts, nil) // one pair too many
	var commands []rediswire.Command
	for t := range texts {
		commands = append(commands, rediswire.Command{Args: []string{"script", "load", t.source()}})
	}
	server.Do(ctx, commands)
	if err := rediswire.First(commands); err != nil {
		return explain(err)
	}
	return nil
}
