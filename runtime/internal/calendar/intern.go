package calendar

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/rategen/rategen/internal/spec"
)

type key struct {
	unit   spec.Unit
	zone   string
	anchor int
}

var (
	mu    sync.RWMutex
	known = map[key]*Period{}
)

// Load returns the periods of a unit that begin at an anchor in a zone. An empty zone is UTC,
// and anchor 0 the first day. Loading periods again does not allocate. How many there
// can be is bounded by the zones of the zone table and their anchors.
func Load(unit spec.Unit, zone string, anchor int) (*Period, error) {
	k := key{unit, zone, anchor}
	mu.RLock()
	p := known[k]
	mu.RUnlock()
	if p != nil {
		return p, nil
	}
	if err := spec.CheckAnchor(unit, anchor); err != nil {
		return nil, err
	}
	location, err := spec.Zone(zone)
	if err != nil {
		return nil, err
	}
	p = &Period{Unit: unit, Zone: location.String(), Anchor: cmp.Or(anchor, unit.First()), location: location, last: new(atomic.Pointer[Bounds])}
	mu.Lock()
	defer mu.Unlock()
	// UTC and the first day may be left out or written, and are one period.
	full := key{unit, p.Zone, p.Anchor}
	if other := known[full]; other != nil {
		p = other
	}
	known[full], known[k] = p, p
	return p, nil
}
