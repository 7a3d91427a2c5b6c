package ratepage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

const (
	// maxHistory is how many entries the history keeps.
	maxHistory = 200
	// maxChanges is how many rules one change of overrides names.
	maxChanges = 20
)

// A history remembers changes of overrides, the last ones first.
type history struct {
	mu      sync.Mutex
	entries []historyEntry
	rules   map[string]string // what overrides made of each rule, as last known
	last    observe.OverrideEvent
	told    bool // last is one
}

// A historyEntry is a change, or why overrides did not come into force.
type historyEntry struct {
	At     time.Time `json:"at"`
	Rule   string    `json:"rule,omitempty"`
	Before string    `json:"before,omitempty"` // empty: as declared, or unknown
	After  string    `json:"after,omitempty"`  // empty: as declared
	Note   string    `json:"note,omitempty"`
	Error  string    `json:"error,omitempty"`
	Unread bool      `json:"unread,omitempty"` // the error is that they cannot be read, and not what they say
	By     string    `json:"by,omitempty"`     // who did it on this page
}

// add puts entries in front of the others.
func (h *history) add(entries ...historyEntry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.push(entries...)
}

func (h *history) push(entries ...historyEntry) {
	h.entries = append(slices.Clone(entries), h.entries...)
	h.entries = slices.Clip(h.entries[:min(len(h.entries), maxHistory)])
}

func (h *history) failed(err error, now time.Time) {
	h.mu.Lock()
	h.last.Err = err
	h.mu.Unlock()
	h.add(historyEntry{At: now, Error: shorten(err.Error(), 500), Unread: !errors.Is(err, runtime.ErrInvalidOverrides)})
}

// overridden notes what an event of overrides has changed about the rules.
func (h *history) overridden(ev observe.OverrideEvent, rules []observe.RuleState, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	after := make(map[string]string)
	for i := range rules {
		if text := overrideText(&rules[i]); text != "" {
			after[rules[i].Rule.Name] = text
		}
	}
	var names []string
	for name, text := range after {
		if h.rules[name] != text {
			names = append(names, name)
		}
	}
	for name := range h.rules {
		if after[name] == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var entries []historyEntry
	for _, name := range names[:min(len(names), maxChanges)] {
		entries = append(entries, historyEntry{At: now, Rule: name, Before: h.rules[name], After: after[name]})
	}
	if more := len(names) - maxChanges; more > 0 {
		entries = append(entries, historyEntry{At: now, Note: fmt.Sprintf("and %d other rules", more)})
	}
	was, first := h.last, !h.told
	h.last, h.told = ev, true
	switch {
	case len(entries) == 0 && !first && was == ev: // of another limiter, or of what is not registered
	case len(entries) == 0 && !first && was.Err != nil && was.Rules == ev.Rules && was.Enabled == ev.Enabled:
		entries = append(entries, historyEntry{At: now, Note: "overrides are read again; they are as they were"})
	case !ev.Enabled:
		entries = append(entries, historyEntry{At: now, Note: "all limits are switched off"})
	case len(entries) == 0 && ev.Rules == 0:
		entries = append(entries, historyEntry{At: now, Note: "no rule is overridden"})
	case len(entries) == 0: // rules that are not registered, say
		entries = append(entries, historyEntry{At: now, Note: fmt.Sprintf("overrides of %d rules are in force", ev.Rules)})
	}
	h.push(entries...)
	h.rules = after
}

func (h *history) view() []historyEntry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]historyEntry{}, h.entries...)
}

// overrideText says what overrides have made of a rule. It is empty if they leave
// the rule as declared.
func overrideText(s *observe.RuleState) string {
	var says []string
	switch {
	case !s.Overridden:
	case !s.Enabled:
		says = append(says, "off")
	default:
		most := s.Max
		if s.Factor > 0 && s.Factor != 1 { // the history is about overrides alone
			most = int64(float64(s.Max)/s.Factor + 0.5)
		}
		if s.Rule.Period != rule.NoPeriod && most != s.Rule.Max {
			says = append(says, fmt.Sprintf("%d per %v", most, s.Rule.Period))
		} else if s.Rule.Period == rule.NoPeriod && (most != s.Rule.Max || s.Window != s.Rule.Window) {
			says = append(says, fmt.Sprintf("%d per %v", most, shortDuration(s.Window)))
		}
		if s.Mode != s.Rule.Mode {
			says = append(says, s.Mode.String())
		}
		if len(says) == 0 {
			says = append(says, "overridden by what is declared")
		}
	}
	switch s.Keys {
	case 0:
	case 1:
		says = append(says, "1 key or pattern overridden")
	default:
		says = append(says, fmt.Sprintf("%d keys or patterns overridden", s.Keys))
	}
	return strings.Join(says, ", ")
}

// shortDuration returns a duration as a directive spells it: in days if it is
// whole ones, and without units that are 0.
func shortDuration(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return spec.DurationText(d)
}

func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
