package ratepage

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime"
)

// A listed rule is a line of api/listing. It has the fields of rategen list -json
// that tools need to find the rule's keys, as far as a running program knows them: not
// the expressions of a key.
type listed struct {
	File       string `json:"file"`
	Name       string `json:"name"`
	Prefix     string `json:"prefix,omitempty"`
	AnyKey     bool   `json:"any_key"`             // the parts of its keys are not known by name
	KeyParts   int    `json:"key_parts,omitempty"` // how many they are; 0: none, or not known
	Window     string `json:"window"`
	Max        string `json:"max"`
	Algorithm  string `json:"algorithm"`
	Storage    string `json:"storage,omitempty"`
	Resolution string `json:"resolution,omitempty"`
	Zone       string `json:"tz,omitempty"`
	Anchor     string `json:"anchor,omitempty"`
	Keep       uint8  `json:"keep,omitempty"`
	Buckets    string `json:"buckets,omitempty"`
	Burst      int64  `json:"burst,omitempty"`
	Wait       string `json:"wait,omitempty"`
	Block      string `json:"block,omitempty"`
	Lease      string `json:"lease,omitempty"`
	Reserve    string `json:"reserve,omitempty"`
	Debt       string `json:"debt,omitempty"`
	Hold       bool   `json:"hold,omitempty"`
	Mode       string `json:"mode"`
	Message    string `json:"message,omitempty"`
}

func listedOf(r *runtime.Rule) listed {
	l := listed{
		File: r.Source, Name: r.Name, Prefix: r.Prefix, AnyKey: true,
		Window: r.Window.String(), Max: strconv.FormatInt(r.Max, 10), Algorithm: r.Algorithm.String(),
		Resolution: duration(r.Resolution), Burst: r.Burst, Wait: duration(r.Wait), Block: duration(r.Block), Lease: duration(r.Lease), Reserve: duration(r.Reserve),
		Hold: r.Hold, Keep: r.Keep, Mode: r.Mode.String(), Message: r.Message,
	}
	if r.Period != runtime.NoPeriod {
		l.Window, l.Zone, l.Anchor = r.Period.String(), r.Zone, spec.AnchorText(spec.Unit(r.Period), r.Anchor)
	}
	if byCall(r) {
		l.Max = "by call"
	}
	if r.Debt != runtime.DebtDefault {
		l.Debt = r.Debt.String()
	}
	switch r.Algorithm {
	case runtime.SlidingLog:
		l.Storage = r.Storage.String()
	case runtime.SlidingCounter:
		l.Buckets = r.Buckets.String()
	}
	return l
}

// duration returns a duration as a directive may write it, and none for 0.
func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// serveListing serves the rules as they are declared, one a line.
func (p *Page) serveListing(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/jsonl; charset=utf-8")
	lines := json.NewEncoder(w)
	for _, s := range p.rules() {
		l := listedOf(s.Rule)
		l.KeyParts = s.KeyParts
		if lines.Encode(l) != nil {
			return // the viewer is gone
		}
	}
}
