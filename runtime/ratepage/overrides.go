package ratepage

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/rategen/rategen/internal/operate"
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
	Entries []operate.Override `json:"entries"`
	More    int                `json:"more,omitempty"` // entries that are left out
	History []operate.Record   `json:"history"`
	Error   string             `json:"error,omitempty"` // why the entries or the history are not known
}

// A cache is what was answered last, for all viewers together.
type cache struct {
	mu   sync.Mutex
	at   time.Time
	json []byte
	err  error
}

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

func (p *Page) serveOverrides(w http.ResponseWriter, r *http.Request) {
	p.overridesCache.serve(w, r, overridesAge, p.overrides)
}

// overrides returns what the editor knows. A page without one knows nothing.
func (p *Page) overrides(ctx context.Context, _ time.Time) ([]byte, error) {
	if p.actions == nil || p.actions.editor == nil {
		return encode(overridesView{Entries: []operate.Override{}, History: []operate.Record{}}), nil
	}
	core := &operate.Core{Changes: p.actions.editor}
	records, _, err := core.History(ctx, operate.Past{Most: math.MaxInt})
	entries, unlisted := core.OverridesBy(ctx, records)
	if err != nil && unlisted != nil {
		return nil, unlisted
	}
	v := overridesView{Entries: entries[:min(len(entries), maxEntries)], More: max(0, len(entries)-maxEntries), History: append([]operate.Record{}, records[:min(len(records), maxRecords)]...)}
	if err != nil || unlisted != nil { // a history may lead to what has broken the hash
		v.Error = cmp.Or(unlisted, err).Error()
	}
	for i := range v.History {
		r := &v.History[i]
		r.Pattern, r.Who, r.Why, r.Did = p.shownKey(r.Pattern), shorten(r.Who, 100), shorten(r.Why, maxWhy), shorten(r.Did, 500)
		r.Before, r.After = shorten(r.Before, 500), shorten(r.After, 500)
	}
	for i := range v.Entries {
		e := &v.Entries[i]
		e.Pattern = p.shownKey(e.Pattern)
		if e.Last != nil {
			e.Last.Who, e.Last.Why = shorten(e.Last.Who, 100), shorten(e.Last.Why, maxWhy)
		}
	}
	return encode(v), nil
}
