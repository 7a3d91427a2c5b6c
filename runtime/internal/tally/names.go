package tally

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

const (
	// maxRules is how many rules have series of their own.
	maxRules = 10_000
	// maxLabel is the longest label in bytes.
	maxLabel = 256
	// Other is the label of all rules beyond.
	Other = "other"
)

// names finds what is counted under the name of a rule. Finding takes one look-up
// and no lock.
type names struct {
	known atomic.Pointer[map[string]*rule] // by the name as the program spells it
	full  atomic.Bool
	mu    sync.Mutex
	each  map[string]*rule // by label
	other rule
}

func newNames() *names {
	n := &names{each: map[string]*rule{}}
	n.other.label = Other
	n.known.Store(&map[string]*rule{})
	return n
}

// of returns what is counted under a name.
func (n *names) of(name string) *rule {
	if r, ok := (*n.known.Load())[name]; ok {
		return r
	}
	if n.full.Load() {
		return &n.other
	}
	n.add(name)
	return n.of(name)
}

// add makes names known. Each call copies all that are known, so many names are
// best added at a time.
func (n *names) add(added ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := maps.Clone(*n.known.Load())
	for _, name := range added {
		if _, ok := next[name]; ok {
			continue
		}
		if len(next) >= maxRules {
			n.full.Store(true)
			break
		}
		label := labelOf(name)
		r := n.each[label]
		if label == Other {
			r = &n.other
		}
		if r == nil {
			r = &rule{label: label}
			n.each[label] = r
		}
		next[strings.Clone(name)] = r
	}
	n.known.Store(&next)
}

// all returns everything that is counted.
func (n *names) all() []*rule {
	n.mu.Lock()
	defer n.mu.Unlock()
	rules := make([]*rule, 0, len(n.each)+1)
	for _, r := range n.each {
		rules = append(rules, r)
	}
	if n.full.Load() || (*n.known.Load())[Other] != nil {
		rules = append(rules, &n.other)
	}
	return rules
}

// labelOf returns a name as a label: valid UTF-8 of bounded length. Names that
// differ beyond that share their series.
func labelOf(name string) string {
	if len(name) > maxLabel {
		end := maxLabel
		for end > maxLabel-utf8.UTFMax && !utf8.RuneStart(name[end]) {
			end--
		}
		name = name[:end]
	}
	return strings.Clone(strings.ToValidUTF8(name, "\uFFFD"))
}
