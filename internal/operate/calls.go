package operate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
)

// Calls are those of all processes that live, in the seconds before their last signs of life.
type Calls struct {
	Processes int         `json:"processes"` // that tell them
	Told      time.Time   `json:"-"`         // when the last one did, by the clock of Redis
	Decided   [4]float64  `json:"decided"`   // a second: see [bridge.ProcessCalls]
	Asked     float64     `json:"asked"`     // how often Redis is asked a second
	Rules     []RuleCalls `json:"rules"`     // of which each process tells the hundred with most calls
	Keys      []HotKey    `json:"keys"`      // about which it is asked most
}

type RuleCalls struct {
	Rule    string     `json:"rule"`
	Decided [4]float64 `json:"decided"` // a second
}

// A HotKey is how often Redis is asked about a key.
type HotKey struct {
	Rule      string  `json:"rule"`
	Key       string  `json:"key"`
	PerSecond float64 `json:"calls_per_s"`
	Share     float64 `json:"share"`     // of all that Redis is asked about
	Processes int     `json:"processes"` // that name it among their ten
	Remedy    string  `json:"remedy,omitempty"`
}

// CallsOf adds up what processes tell.
func CallsOf(processes []bridge.Process) (c Calls) {
	keys, rules := map[[2]string]*HotKey{}, map[string][4]float64{}
	for _, p := range processes {
		told := p.Calls
		if p.Silent || told.Seconds <= 0 {
			continue
		}
		c.Processes++
		if p.Alive.After(c.Told) {
			c.Told = p.Alive
		}
		c.Asked += float64(told.Asked) / told.Seconds
		for i, n := range told.Decided {
			c.Decided[i] += float64(n) / told.Seconds
		}
		for _, r := range told.Rules {
			if place := r[0]; place >= 0 && place < int64(len(p.Rules)) {
				name := p.Rules[place].Name
				of := rules[name]
				for i := range of {
					of[i] += float64(r[i+1]) / told.Seconds
				}
				rules[name] = of
			}
		}
		for _, k := range told.Keys {
			of := keys[[2]string{k.Rule, k.Key}]
			if of == nil {
				of = &HotKey{Rule: k.Rule, Key: KeyText(k.Key)}
				keys[[2]string{k.Rule, k.Key}] = of
			}
			of.PerSecond += float64(k.Count) / told.Seconds
			of.Processes++
		}
	}
	for name, decided := range rules {
		c.Rules = append(c.Rules, RuleCalls{name, decided})
	}
	slices.SortFunc(c.Rules, func(a, b RuleCalls) int { // those first that refuse most
		return cmp.Or(cmp.Compare(b.Decided[1]+b.Decided[2], a.Decided[1]+a.Decided[2]), cmp.Compare(b.Decided[0], a.Decided[0]), cmp.Compare(a.Rule, b.Rule))
	})
	for _, k := range keys {
		k.Share = k.PerSecond / max(c.Asked, k.PerSecond)
		c.Keys = append(c.Keys, *k)
	}
	slices.SortFunc(c.Keys, func(a, b HotKey) int {
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	return c
}

// hot is from how many calls a second on a key is worth a remedy.
const hot = 10_000

func Remedy(r *runtime.Rule) string {
	leased := *r
	leased.Lease = min(time.Second, r.Window/10).Truncate(time.Millisecond)
	if leased.Max == 0 {
		leased.Max = 1
	}
	if r.Lease > 0 {
		return "a longer lease, and a max of which a lease is many calls"
	}
	if leased.Lease > 0 && leased.Check() == nil {
		return fmt.Sprintf("lease=%s", ShortDuration(leased.Lease))
	}
	return "a key with more parts"
}

// A Holder is a process whose calls hold permits of a key.
type Holder struct {
	Process string    `json:"process"`
	Host    string    `json:"host"`
	Build   string    `json:"build"`
	Permits int64     `json:"permits"`
	Since   time.Time `json:"since"` // of the first of them, by the clock of Redis
	Silent  bool      `json:"silent"`
}

// String says who holds what, and that its permits lapse if its process gives no sign of life.
func (h Holder) String() string {
	text := fmt.Sprintf("%d by %s%s", h.Permits, strings.TrimSpace(h.Process+" "+h.Build), since(h.Since))
	if h.Silent {
		return text + ", which gives no sign of life: they lapse"
	}
	return text
}

// HoldersOf returns which of processes hold permits of a key of a rule, those first that have held them for longest.
// Texts are how the key may be told.
func HoldersOf(processes []bridge.Process, name string, texts ...string) (all []Holder) {
	for _, p := range processes {
		for _, k := range p.Calls.Permits {
			if k.Rule == name && slices.Contains(texts, k.Key) {
				all = append(all, Holder{p.Name, p.Host, p.Build, k.Permits, k.Since, p.Silent})
			}
		}
	}
	slices.SortFunc(all, func(a, b Holder) int { return a.Since.Compare(b.Since) })
	return all
}
