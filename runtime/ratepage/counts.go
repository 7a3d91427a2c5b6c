package ratepage

import (
	"sync"
	"sync/atomic"

	"github.com/rategen/rategen/runtime"
)

// maxNames is how many rules have counts of their own. A program that makes new
// rules all the time does not fill its memory: the others share theirs.
const maxNames = 10_000

// others is the name under which rules beyond maxNames are counted.
const others = "(other rules)"

// The columns of a rule's counts.
const (
	admitted  = iota
	denied    // by the store, a remembered denial, or this process
	shadow    // had no room, but the limit only counts
	undecided // by the failure policy, since nothing else could
	columns
)

// column returns where a decision is counted, and false for a limit that had room
// in a call which another limit denied.
func column(ev *runtime.DecisionEvent) (int, bool) {
	switch {
	case ev.Verdict == runtime.Unavailable || ev.Source == runtime.SourceFailure:
		return undecided, true
	case ev.Verdict == runtime.Admitted:
		return admitted, true
	case ev.Verdict == runtime.Denied:
		return denied, true
	case ev.Verdict == runtime.ShadowDenied:
		return shadow, true
	}
	return 0, false
}

// A ruleCount counts the decisions of the rules of one name since the program
// started.
type ruleCount struct {
	name string
	n    [columns]atomic.Uint64

	last [columns]uint64 // of the last sample, which one goroutine at a time takes
}

// counts are those of all rules. Finding a rule that was there before the last
// merge takes no lock.
type counts struct {
	known atomic.Pointer[map[string]*ruleCount] // never written to

	mu     sync.Mutex
	fresh  map[string]*ruleCount // not known yet
	missed int                   // how often fresh was read since the last merge
	other  *ruleCount
}

// add counts a decision of the rule of a name.
func (c *counts) add(name string, column int) {
	if known := c.known.Load(); known != nil {
		if rule := (*known)[name]; rule != nil {
			rule.n[column].Add(1)
			return
		}
	}
	c.find(name).n[column].Add(1)
}

// find returns the count of a rule that is not known yet.
func (c *counts) find(name string) *ruleCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.known.Load()
	if known != nil && (*known)[name] != nil {
		return (*known)[name]
	}
	rule := c.fresh[name]
	switch n := c.len(known); {
	case rule != nil:
		c.missed++
	case n >= maxNames:
		if c.other == nil {
			c.other = &ruleCount{name: others}
		}
		return c.other
	default:
		if c.fresh == nil {
			c.fresh = make(map[string]*ruleCount)
		}
		rule = &ruleCount{name: name}
		c.fresh[name] = rule
	}
	// Copying what is known is worth it once that many calls have paid for it.
	if c.missed+len(c.fresh) > c.len(known)/4 {
		c.merge()
	}
	return rule
}

// merge makes fresh rules known. The caller holds mu.
func (c *counts) merge() {
	if len(c.fresh) == 0 {
		return
	}
	known := c.known.Load()
	merged := make(map[string]*ruleCount, c.len(known))
	if known != nil {
		for name, rule := range *known {
			merged[name] = rule
		}
	}
	for name, rule := range c.fresh {
		merged[name] = rule
	}
	c.known.Store(&merged)
	c.fresh, c.missed = nil, 0
}

func (c *counts) len(known *map[string]*ruleCount) int {
	n := len(c.fresh)
	if known != nil {
		n += len(*known)
	}
	return n
}

// each calls visit with every count.
func (c *counts) each(visit func(*ruleCount)) {
	c.mu.Lock()
	c.merge()
	known, other := c.known.Load(), c.other
	c.mu.Unlock()
	if known != nil {
		for _, rule := range *known {
			visit(rule)
		}
	}
	if other != nil {
		visit(other)
	}
}
