package ratepage

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/rategen/rategen/internal/rulelist"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A ruleView is a rule and what holds for it now.
type ruleView struct {
	Name string `json:"name"`
	// Copy tells the rules of several limiters apart that have the same name and place:
	// 1 for the second, and so on.
	Copy      int     `json:"copy,omitempty"`
	Source    string  `json:"source"`
	Algorithm string  `json:"algorithm"`
	Enabled   bool    `json:"enabled"`
	Mode      string  `json:"mode"`
	Max       int64   `json:"max"` // with its override and its factor
	WindowMS  float64 `json:"window_ms"`
	Period    string  `json:"period,omitempty"` // of the calendar: the window is how long the present one is
	Burst     int64   `json:"burst,omitempty"`
	BlockMS   float64 `json:"block_ms,omitempty"`
	WaitMS    float64 `json:"wait_ms,omitempty"`
	Hold      bool    `json:"hold,omitempty"`
	Fail      string  `json:"fail"`
	// Origin says where max comes from: directive, override, adaptive, or call if
	// each call brings its own.
	Origin     string  `json:"origin"`
	Overridden bool    `json:"overridden"`
	Keys       int     `json:"overridden_keys"` // patterns
	Factor     float64 `json:"factor"`
	Called     bool    `json:"called"` // since it is known
	// Declared is what the directive says.
	Declared terms `json:"declared"`
}

// terms are the numbers of a rule that an override can change.
type terms struct {
	Max      int64   `json:"max"`
	WindowMS float64 `json:"window_ms"`
	Mode     string  `json:"mode"`
}

func viewOf(s *observe.RuleState) ruleView {
	r := s.Rule
	v := ruleView{
		Name: r.Name, Source: r.Source, Algorithm: r.Algorithm.String(),
		Enabled: s.Enabled, Mode: s.Mode.String(), Max: s.Max, WindowMS: milliseconds(s.Window),
		Burst: r.Burst, BlockMS: milliseconds(r.Block), WaitMS: milliseconds(r.Wait), Hold: r.Hold, Fail: r.Fail.String(),
		Overridden: s.Overridden, Keys: s.Keys, Factor: s.Factor, Called: s.Called,
		Declared: terms{r.Max, milliseconds(r.Window), r.Mode.String()},
	}
	if r.Period != rule.NoPeriod {
		v.Period, v.Declared.WindowMS = r.Period.String(), v.WindowMS
	}
	switch {
	case s.Factor != 1:
		v.Origin = "adaptive"
	case s.Overridden && !(byCall(r) && s.Max == 0 && v.changesMore()):
		v.Origin = "override"
	case byCall(r):
		v.Origin = "call"
	default:
		v.Origin = "directive"
	}
	return v
}

// changesMore reports whether the override changes something beside the max. One of a
// rule whose calls bring their max then has no max of its own: a max of 0 with
// another change is rare.
func (v *ruleView) changesMore() bool {
	return !v.Enabled || v.Mode != v.Declared.Mode || v.WindowMS != v.Declared.WindowMS
}

// byCall reports whether each call brings a max of its own: a directive has none
// of 0.
func byCall(r *runtime.Rule) bool { return r.Max == 0 }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// A rulesView is all rules. Its version is another one after each change.
type rulesView struct {
	Version int64      `json:"version"`
	Rules   []ruleView `json:"rules"`
}

// A ruleSet is the rules as they held when they were last read.
type ruleSet struct {
	version int64
	views   []ruleView
	json    []byte // of a rulesView, made when it is first asked for

	seen    int64     // what changed was
	read    time.Time // when
	enabled bool
}

const (
	// rulesAge is after how long rules are read again though nothing has told of a
	// change. A new rule, a factor and a kill switch do not.
	rulesAge = 10 * time.Second
	// maxRows is how many rules a frame has: those with the most calls, and those
	// that have changed.
	maxRows = 100
)

// refresh reads the rules again if they may have changed, and returns those that
// have. If these are many, or rules have come or gone, all is true.
func (s *ruleSet) refresh(p *Page, now time.Time) (changed []ruleView, all bool) {
	seen, enabled := p.changed.Load(), p.enabled()
	if s.version > 0 && seen == s.seen && enabled == s.enabled && now.Sub(s.read) < rulesAge {
		return nil, false
	}
	s.seen, s.enabled, s.read = seen, enabled, now
	states := p.rules()
	all = len(states) != len(s.views)
	views := make([]ruleView, len(states))
	copies := make(map[[2]string]int, len(states))
	for i := range states {
		views[i] = viewOf(&states[i])
		place := [2]string{views[i].Name, views[i].Source}
		views[i].Copy = copies[place]
		copies[place]++
		if !all && views[i] != s.views[i] {
			all = views[i].Name != s.views[i].Name || views[i].Source != s.views[i].Source
			changed = append(changed, views[i])
		}
	}
	if all = all || len(changed) > maxRows || s.version == 0; all || len(changed) > 0 {
		s.version, s.views, s.json = s.version+1, views, nil
	}
	return changed, all
}

func (s *ruleSet) encoded() []byte {
	if s.json == nil {
		s.json = encode(rulesView{s.version, s.views})
	}
	return s.json
}

func (p *Page) enabled() bool {
	for _, l := range p.all() {
		if !l.Enabled() {
			return false
		}
	}
	return true
}

func (p *Page) serveRules(w http.ResponseWriter, _ *http.Request) {
	_, data := p.sampler.rules(p, time.Now())
	writeJSON(w, http.StatusOK, data)
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("ratepage: " + err.Error())
	}
	return b
}

// serveListing lists each rule once, also if several limiters have it.
func (p *Page) serveListing(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/jsonl; charset=utf-8")
	var all []rulelist.Rule
	listed := make(map[string]int) // places in all
	for _, s := range p.rules() {
		l := rulelist.New(s.Rule)
		if byCall(s.Rule) {
			l.Max = "by call"
		}
		text := string(encode(l))
		if _, is := listed[text]; !is {
			listed[text] = len(all)
			all = append(all, l)
		}
		of := &all[listed[text]]
		of.KeyParts = max(of.KeyParts, s.KeyParts) // only a limiter that was called knows
	}
	lines := json.NewEncoder(w)
	for _, l := range all {
		if lines.Encode(l) != nil {
			return // the viewer is gone
		}
	}
}
