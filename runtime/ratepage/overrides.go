package ratepage

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

const (
	// maxEntries is how many overrides the page shows.
	maxEntries = 200
	// maxRecords is how many changes it shows.
	maxRecords = 50
	// overridesAge is for how long what the editor has said serves all viewers.
	overridesAge = time.Second
	// overridesTimeout is how long the editor may take.
	overridesTimeout = 5 * time.Second
)

// An overridesView is what the editor knows: the overrides, and their last changes.
type overridesView struct {
	Entries []entryView  `json:"entries"`
	More    int          `json:"more,omitempty"` // entries that are left out
	History []recordView `json:"history"`
	Error   string       `json:"error,omitempty"` // why the entries or the history are not known
}

// An entryView is an override.
type entryView struct {
	Rule string  `json:"rule"`
	Key  *string `json:"key"` // the pattern as it is shown; null: it is for the rule
	Says string  `json:"says"`
	// Until is when all of it ends, and Ends when fields do if they differ.
	Until *time.Time           `json:"until,omitempty"`
	Ends  map[string]time.Time `json:"ends,omitempty"`
	Over  bool                 `json:"over,omitempty"` // it has no effect any more
}

// A recordView is a change in the history.
type recordView struct {
	ID     int64     `json:"id"`
	At     time.Time `json:"at"`
	Who    string    `json:"who,omitempty"`
	Why    string    `json:"why,omitempty"`
	Rule   string    `json:"rule"`
	Key    *string   `json:"key"`
	Before string    `json:"before,omitempty"`
	After  string    `json:"after,omitempty"`
	Undoes int64     `json:"undoes,omitempty"`
	Did    string    `json:"did,omitempty"` // if it was no change of overrides
}

// A cache is what was answered last, for all viewers together.
type cache struct {
	mu   sync.Mutex
	at   time.Time
	json []byte
	err  error
}

// forget has the next answer be made anew: something has changed.
func (c *cache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = time.Time{}
}

// serve answers with what make returns, or has returned if that is younger than age.
func (c *cache) serve(w http.ResponseWriter, r *http.Request, age time.Duration, make func(context.Context, time.Time) ([]byte, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.at) >= age || now.Before(c.at) {
		// Whoever asks first may leave before the others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), overridesTimeout)
		defer cancel()
		c.json, c.err = make(ctx, now)
		c.at = time.Now()
	}
	if c.err != nil {
		writeFailure(w, c.err)
		return
	}
	writeJSON(w, http.StatusOK, c.json)
}

// serveOverrides answers with the overrides and their history.
func (p *Page) serveOverrides(w http.ResponseWriter, r *http.Request) {
	p.overridesCache.serve(w, r, overridesAge, p.overrides)
}

// overrides returns what the editor knows. A page without one knows nothing.
func (p *Page) overrides(ctx context.Context, now time.Time) ([]byte, error) {
	v := overridesView{Entries: []entryView{}, History: []recordView{}}
	if p.actions == nil || p.actions.editor == nil {
		return encode(v), nil
	}
	records, err := p.actions.editor.History(ctx, maxRecords)
	for _, r := range records {
		if r.Several > 0 {
			r.After = fmt.Sprintf("%d overrides", r.Several)
		}
		v.History = append(v.History, recordView{r.ID, r.At, shorten(r.Who, 100), shorten(r.Why, maxWhy), r.Rule, p.patternOf(r.Target), shorten(r.Before, 500), shorten(r.After, 500), r.Undoes, shorten(r.Did, 500)})
	}
	entries, unlisted := p.actions.editor.List(ctx)
	if err != nil && unlisted != nil {
		return nil, unlisted
	}
	if err != nil || unlisted != nil { // a history may lead to what has broken the hash
		v.Error = cmp.Or(unlisted, err).Error()
	}
	for _, e := range entries[:min(len(entries), maxEntries)] {
		is := entryView{Rule: e.Rule, Key: p.patternOf(e.Target), Says: e.String(), Ends: e.Ends, Over: e.At(now) == rule.KeyOverride{}}
		if !e.Until.IsZero() {
			is.Until = &e.Until
		}
		v.Entries = append(v.Entries, is)
	}
	v.More = len(entries) - len(v.Entries)
	return encode(v), nil
}

// patternOf returns the pattern of a target as the page shows it: masked, unless keys
// are shown as they are. It is nil for a rule.
func (p *Page) patternOf(t override.Target) *string {
	if !t.Keys {
		return nil
	}
	return new(p.shownKey(t.Pattern))
}
