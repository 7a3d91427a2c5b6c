package ratepage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

const (
	// interval is the time between two samples.
	interval = time.Second
	// maxPoints is how many samples charts go back.
	maxPoints = 120
	// maxRefused is how many keys are shown.
	maxRefused = 20
)

// A sampler reads the counts once a second while somebody looks, for all viewers
// together: the first of them to ask in a second takes the sample.
type sampler struct {
	mu     sync.Mutex
	set    ruleSet
	taken  time.Time // when the last sample was
	number int64     // of the last frame
	frame  []byte    // it is the difference to the one before
	reload bool      // with it the rules are to be sent again
	points []point
	totals [columns]uint64
	first  sectionsView // as they were sent last

	undecided undecideds
}

// A point is one sample of all rules together: calls since the sample before.
type point struct {
	At      int64           `json:"at"`      // milliseconds since 1970
	Seconds float64         `json:"seconds"` // since the sample before
	N       [columns]uint64 `json:"n"`       // admitted, refused, shadow, undecided
	Latency latencyView     `json:"latency"`
}

// A row is the calls of the rules of a name since the sample before.
type row struct {
	Name    string          `json:"name"`
	N       [columns]uint64 `json:"n"`
	Waiting int64           `json:"waiting,omitempty"` // calls, now
	HeldMS  float64         `json:"held_ms,omitempty"` // for how long this process holds calls back
}

// A sectionsView is what a frame has only if it has changed.
type sectionsView struct {
	Redis     json.RawMessage `json:"redis,omitempty"`
	History   json.RawMessage `json:"history,omitempty"`
	Refused   json.RawMessage `json:"refused_keys,omitempty"`
	Findings  json.RawMessage `json:"findings,omitempty"`
	Undecided json.RawMessage `json:"undecided,omitempty"`
}

func (v *sectionsView) each() [5]*json.RawMessage {
	return [...]*json.RawMessage{&v.Redis, &v.History, &v.Refused, &v.Findings, &v.Undecided}
}

// A frame is what happened in a second. In a state it is what there is to know to
// begin with.
type frame struct {
	Version int64      `json:"version"` // of the rules
	Reload  bool       `json:"reload,omitempty"`
	Enabled bool       `json:"enabled"`
	Applied int64      `json:"applied"` // how often overrides have come into force, also those of keys alone
	Changed []ruleView `json:"changed,omitempty"`
	Point   *point     `json:"point,omitempty"`
	Rows    []row      `json:"rows,omitempty"`
	Quiet   int        `json:"left_out,omitempty"` // rules with calls that have no row
	sectionsView
}

// A stateView is all there is to see, but for the rules.
type stateView struct {
	frame
	Made    int64           `json:"made"`   // when the page was, to tell one process from the next
	Host    string          `json:"host"`   // the machine of this process, as it calls itself
	Totals  [columns]uint64 `json:"totals"` // since then
	Points  []point         `json:"points"`
	Actions []string        `json:"actions"` // that the page offers
	Keys    string          `json:"keys"`    // off, masked or plain
	Columns [columns]string `json:"columns"` // what the numbers count
	Viewers int64           `json:"viewers"` // streams under way
	Most    int             `json:"viewers_max"`
	Every   int64           `json:"every_ms"` // between two frames
}

// An event is a frame or a state as it is sent. Its number is that of the frame, or of
// the last one that a state includes, and its version that of the rules then.
type event struct {
	number, version int64
	reload          bool // the rules are to be sent again
	data            []byte
}

// next returns the frame that is due at a time. It takes a sample if nobody has in this
// interval.
func (s *sampler) next(p *Page, now time.Time) event {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due(p, now)
	return event{s.number, s.set.version, s.reload, s.frame}
}

// state returns what a viewer with some actions needs to know to begin with, but for the rules.
func (s *sampler) state(p *Page, now time.Time, offered []string) event {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due(p, now)
	v := stateView{
		frame: frame{Version: s.set.version, Enabled: s.set.enabled, Applied: p.changed.Load(), sectionsView: s.first},
		Made:  p.made, Host: p.host, Totals: s.totals, Points: append([]point{}, s.points...), Actions: offered, Keys: p.keysShown(),
		Columns: [columns]string{"admitted", "refused", "shadow", "undecided"},
		Viewers: p.looking.Load(), Most: p.room(offered), Every: interval.Milliseconds(),
	}
	return event{s.number, s.set.version, true, encode(v)}
}

// rules returns all rules as JSON, as they hold now, and their version.
func (s *sampler) rules(p *Page, now time.Time) (version int64, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due(p, now)
	return s.set.version, s.set.encoded()
}

// due takes a sample if nobody has in this interval. Timers are late or early by a little. The caller holds mu.
func (s *sampler) due(p *Page, now time.Time) {
	if passed := now.Sub(s.taken); passed >= interval*9/10 || passed < 0 {
		s.sample(p, now)
	}
}

// sample takes a sample and makes the next frame. The caller holds mu.
func (s *sampler) sample(p *Page, now time.Time) {
	passed := now.Sub(s.taken)
	// After a pause nobody knows when the calls were.
	resumed := passed > 3*interval || passed < 0
	s.taken = now
	s.number++
	f := frame{}
	f.Changed, f.Reload = s.set.refresh(p, now)
	if f.Reload {
		f.Changed = nil
	}
	s.reload = f.Reload
	f.Version, f.Enabled, f.Applied = s.set.version, s.set.enabled, p.changed.Load()

	at := point{At: now.UnixMilli(), Seconds: passed.Seconds()}
	rows, totals := p.counts.sample()
	s.totals = totals
	decisions := uint64(0) // so far
	for _, n := range totals {
		decisions += n
	}
	if resumed {
		p.latencies.restart()
		rows = nil
	} else {
		p.latencies.sample()
		for _, r := range rows {
			for i, n := range r.N {
				at.N[i] += n
			}
		}
		at.Latency = p.latencies.view()
		s.points = append(s.points, at)
		if over := len(s.points) - maxPoints; over > 0 {
			s.points = slices.Delete(s.points, 0, over)
		}
		f.Point = &at
	}
	f.Rows, f.Quiet = busiest(rows)

	f.sectionsView = sectionsView{encode(p.redis.view()), encode(p.history.view()), encode(p.refusedKeys(now)),
		encode(p.findings(p.counts.calls())), encode(s.undecided.sample(&p.redis, decisions, resumed, now))}
	for i, section := range f.each() {
		if was := s.first.each()[i]; bytes.Equal(*section, *was) {
			*section = nil
		} else {
			*was = *section
		}
	}
	s.frame = encode(f)
}

// busiest returns the rows of a frame, those first whose rules refuse most, and how many are left out.
func busiest(rows []row) ([]row, int) {
	first := firstOf(rows, maxRows, func(a, b row) int {
		for _, column := range [columns]int{refused, undecided, shadow, admitted} {
			if c := cmp.Compare(b.N[column], a.N[column]); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return first, len(rows) - len(first)
}

// firstOf returns the first n values in an order. All others are compared once with the last of these, and not sorted.
func firstOf[T any](all []T, n int, compare func(a, b T) int) []T {
	first := slices.Clone(all[:min(n, len(all))])
	slices.SortFunc(first, compare)
	for _, v := range all[len(first):] {
		if compare(v, first[n-1]) < 0 {
			at, _ := slices.BinarySearchFunc(first, v, compare)
			first = slices.Insert(first[:n-1], at, v)
		}
	}
	return first
}
