package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A State is what is known about a key of a rule.
type State struct {
	Rule      string   `json:"rule"`
	Key       string   `json:"key"`
	State     string   `json:"state"` // one of States
	Shadow    bool     `json:"shadow"`
	Limit     *int64   `json:"limit"` // null: none, or each call brings its own
	Used      int64    `json:"used"`
	Remaining *int64   `json:"remaining"`
	Window    string   `json:"window"`
	RetryMS   *int64   `json:"retry_after_ms"` // null: never
	ResetMS   int64    `json:"reset_after_ms"`
	Past      []Period `json:"past,omitempty"`                // the last periods, the last one first
	StandsIn  bool     `json:"max_of_last_refusal,omitempty"` // that is the limit, since each call brings its own
	Permits   bool     `json:"permits,omitempty"`             // they come back when calls end, and RetryMS is at most when
	Differs   string   `json:"differs,omitempty"`             // what processes have declared of the rule, if not all the same
	share     float64  // used of the limit
}

// A Period is one of the calendar that is over.
type Period struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	Used  int64     `json:"used"`
}

// The states of a key. Broken is one that another program has written. Unknown is one of a rule whose
// calls bring their max.
const (
	Off     = "off"
	OK      = "ok"
	Unknown = "unknown"
	Near    = "near"
	Refused = "refused"
	Held    = "held"
	Blocked = "blocked"
	Broken  = "broken"
)

// States are all states, by how bad they are.
var States = []string{Off, OK, Unknown, Near, Refused, Held, Blocked, Broken}

// Refuses reports whether the next call is kept out.
func (s State) Refuses() bool { return slices.Contains([]string{Refused, Held, Blocked}, s.State) }

// State returns what a call of a cost of 1 would find now, also of a key that another program has written.
func (c *Core) State(ctx context.Context, r Rule, key *runtime.Key) (State, error) {
	k := State{Rule: r.Name, Key: key.Pattern(), Shadow: c.Shadows(r, key), Window: r.Per(), Differs: c.differs[r.Name].Limits(), Permits: algorithm.RowOf(r.Algorithm).Is(algorithm.Lends)}
	limit, standsIn := c.limitOf(r, key)
	usages, err := c.Limiter.Usage(ctx, limit)
	if runtime.ClassOf(err) == observe.ClassWrongType {
		return State{Rule: r.Name, Key: k.Key, State: Broken}, nil
	}
	if err != nil {
		return State{}, err
	}
	if len(usages) == 0 {
		k.State, k.RetryMS = Off, new(int64)
		return k, nil
	}
	k.judge(usages[0], r.Hold, c.Near)
	if standsIn > 0 && usages[0].Max == standsIn { // no override says another
		k.unknown(standsIn)
	}
	return k, nil
}

func (s *State) judge(found runtime.Usage, holds bool, near float64) {
	s.ResetMS, s.Used, s.Shadow = found.ResetAfter.Milliseconds(), found.Limit-found.Remaining, s.Shadow || !found.Mode.Refuses()
	if found.Period == rule.NoPeriod {
		s.Window = ShortDuration(found.Window)
	}
	for _, p := range found.Past {
		s.Past = append(s.Past, Period(p))
	}
	s.Limit, s.Remaining, s.share = &found.Limit, &found.Remaining, 1
	if found.Limit > 0 {
		s.share = float64(s.Used) / float64(found.Limit)
	}
	if found.RetryAfter != runtime.Never {
		s.RetryMS = new(found.RetryAfter.Milliseconds())
	}
	switch {
	case found.Blocked && holds && s.RetryMS != nil:
		s.State = Held
	case found.Blocked || s.RetryMS == nil:
		s.State = Blocked
	case found.RetryAfter > 0:
		s.State = Refused
	case s.share >= near:
		s.State = Near
	default:
		s.State = OK
	}
}

// unknown takes back what was judged by a max that stands for that of a call: the next one may bring
// another. Whom it refuses it has refused before.
func (s *State) unknown(most int64) {
	admits := s.State == OK || s.State == Near
	if admits {
		s.State = Unknown
	}
	if s.StandsIn = !admits && most != rule.MaxLog; !s.StandsIn {
		s.Limit, s.Remaining, s.share = nil, nil, 0
	}
}

// Shadows reports whether a rule refuses no call with a key.
func (c *Core) Shadows(r Rule, key *runtime.Key) bool {
	shadow, of := r.Shadow, c.Modes.Rules[r.Name]
	if of.Mode != nil {
		shadow = !of.Mode.Refuses()
	}
	if pattern, is := Matching(of.Keys, key.Pattern()); is && of.Keys[pattern].Mode != nil {
		shadow = !of.Keys[pattern].Mode.Refuses()
	}
	return shadow
}

func (r Rule) Per() string {
	if r.Period != rule.NoPeriod {
		return r.Period.String()
	}
	return ShortDuration(r.Window)
}

// Matching returns the pattern that is in force for a key: itself, or the longest
// beginning.
func Matching[T any](patterns map[string]T, key string) (best string, is bool) {
	if _, is := patterns[key]; is {
		return key, true
	}
	for i := len(key); i >= 0; i-- {
		if _, is := patterns[key[:i]+"*"]; is {
			return key[:i] + "*", true
		}
	}
	return "", false
}

// Worse orders states: what keeps callers out comes first.
func Worse(a, b State) int {
	rank := func(s State) int { return -slices.Index(States, s.State) }
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.share, a.share), cmp.Compare(b.Used, a.Used), strings.Compare(a.Key, b.Key))
}

// ShortDuration writes a duration with no more digits than an operator reads.
func ShortDuration(d time.Duration) string {
	digit := time.Millisecond
	if d >= time.Hour {
		digit = time.Second
	} else if d >= time.Minute {
		digit = 100 * time.Millisecond
	}
	return spec.DurationText(d.Round(digit))
}

const MostTenants = 20

// A Tenant is one of those that share a key.
type Tenant struct {
	Name string `json:"name"` // as patterns of keys are written
	// Used is what it has used of late by its weight: it decays by 1/e in a window.
	Used      float64 `json:"used_by_weight"`
	BlockedMS int64   `json:"blocked_for_ms,omitempty"`
}

// Divided are the shares of a key that have used most of late, and how many there are, if its rule is divided.
type Divided struct {
	Shares      []Tenant `json:"shares,omitempty"`
	SharesTotal int64    `json:"shares_total,omitempty"`
}

// SharesOf returns the shares of a key of a rule.
func SharesOf(ctx context.Context, l *runtime.Limiter, r *runtime.Rule, key *runtime.Key) (s Divided, err error) {
	if r.Headroom == 0 {
		return s, nil
	}
	found, total, err := bridge.LimiterOf(l).Tenants(ctx, LimitOf(r, key), MostTenants)
	for _, t := range found {
		name := t.Name
		if parsed, err := rule.ParseKey(name); err == nil {
			name = parsed.Pattern()
		}
		s.Shares = append(s.Shares, Tenant{name, t.Used, t.Rest.Milliseconds()})
	}
	s.SharesTotal = total
	return s, err
}

func (t Tenant) String() string { return t.Name + ", used " + t.Said() }

func (t Tenant) Said() string {
	text := fmt.Sprintf("%.3g by weight", t.Used)
	if t.BlockedMS > 0 {
		text += ", blocked for " + ShortDuration(time.Duration(t.BlockedMS)*time.Millisecond)
	}
	return text
}
