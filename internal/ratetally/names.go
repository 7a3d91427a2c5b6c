package ratetally

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"

	"github.com/rategen/rategen/runtime/observe"
)

const (
	// maxRules is how many rules have series of their own.
	maxRules = 10_000
	// maxLabel is the longest label in bytes.
	maxLabel = 256
	// otherLabel is the label of all rules beyond.
	otherLabel = "other"
)

// names finds what is counted under the name of a rule. Finding a name that has been
// used for a while takes one look-up and no lock.
type names struct {
	quick [1024]atomic.Pointer[named]      // by where the name lies in memory
	known atomic.Pointer[map[string]*rule] // by the name as the program spells it; never changed
	full  atomic.Bool
	mu    sync.Mutex
	next  map[string]*rule // all that are known and newer ones; nil: there are none
	tries int              // how often a name was not known since next was made
	each  map[string]*rule // by label
	other rule
}

func newNames() *names {
	n := &names{each: map[string]*rule{}}
	n.other.label = otherLabel
	n.known.Store(&map[string]*rule{})
	return n
}

// A named is what is counted under a name.
type named struct {
	name string
	rule *rule
}

// rule returns what is counted under a name. The name of a rule usually is a constant.
// Finding it by where it lies takes half as long as by its bytes, and comparing it with
// itself no time.
func (n *names) rule(name string) *rule {
	at := uintptr(unsafe.Pointer(unsafe.StringData(name)))
	slot := &n.quick[(at^at>>10)%uintptr(len(n.quick))]
	found := slot.Load()
	if found != nil && found.name == name {
		return found.rule
	}
	r := n.find(name)
	if found == nil && r != &n.other && len(name) <= maxLabel { // which it keeps in memory
		slot.CompareAndSwap(nil, &named{name, r})
	}
	return r
}

// find returns what is counted under a name.
func (n *names) find(name string) *rule {
	full := n.full.Load() // before known, which has all names from then on
	if r, ok := (*n.known.Load())[name]; ok {
		return r
	}
	if full {
		return &n.other
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.add(name)
	// As many tries pay for the copy that the next new name will take.
	if n.tries++; n.tries >= len(n.next) {
		n.publish()
	}
	return r
}

// add returns what is counted under a name that may be new.
func (n *names) add(name string) *rule {
	if n.next == nil {
		n.next = maps.Clone(*n.known.Load())
	}
	if r, ok := n.next[name]; ok {
		return r
	}
	if len(n.next) >= maxRules {
		n.publish()
		n.full.Store(true)
		return &n.other
	}
	label := labelOf(name)
	r := n.each[label]
	if r == nil {
		r = &n.other
		if label != otherLabel {
			r = &rule{label: label}
		}
		n.each[label] = r
	}
	n.next[strings.Clone(name)] = r
	return r
}

// publish makes new names known.
func (n *names) publish() {
	if n.next != nil {
		published := n.next
		n.known.Store(&published)
		n.next, n.tries = nil, 0
	}
}

// learn makes the names of rules known.
func (n *names) learn(states []observe.RuleState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range states {
		if n.full.Load() {
			return
		}
		n.add(states[i].Rule.Name)
	}
	n.publish()
}

// all returns everything that is counted.
func (n *names) all() []*rule {
	n.mu.Lock()
	defer n.mu.Unlock()
	rules := make([]*rule, 0, len(n.each)+1)
	for _, r := range n.each {
		rules = append(rules, r)
	}
	if n.full.Load() && n.each[otherLabel] == nil {
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
