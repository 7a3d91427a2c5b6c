package operate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// An Override is one of the hash, and the last change of it that the history has, or nil.
type Override struct {
	override.Entry
	Last *override.Record
}

// MarshalJSON has the fields that are in force of an override, and as it stands in the hash in says.
func (o Override) MarshalJSON() ([]byte, error) {
	v := struct {
		Rule    string               `json:"rule"`             // * for all limits
		Pattern *string              `json:"pattern"`          // null: it is for the rule
		Shares  bool                 `json:"shares,omitempty"` // the pattern is of shares
		Block   bool                 `json:"block,omitempty"`
		Allow   bool                 `json:"allow,omitempty"`
		Enabled *bool                `json:"enabled,omitempty"`
		Max     *int64               `json:"max,omitempty"`
		Burst   *int64               `json:"burst,omitempty"`
		Weight  *int64               `json:"weight,omitempty"`
		Window  string               `json:"window,omitempty"`
		Mode    string               `json:"mode,omitempty"`
		Until   time.Time            `json:"until,omitzero"`  // when all of it ends
		Ends    map[string]time.Time `json:"ends,omitempty"`  // of fields, if not all have the same
		Ended   bool                 `json:"ended,omitempty"` // it has no effect any more
		Says    json.RawMessage      `json:"says"`
		Who     string               `json:"who,omitempty"` // has made it, if the history knows
		Why     string               `json:"why,omitempty"`
		At      time.Time            `json:"at,omitzero"`
	}{Rule: o.Rule, Pattern: patternOf(o.Target), Block: o.Block, Allow: o.Allow, Enabled: o.Enabled, Shares: o.Shares, Max: o.Max, Burst: o.Burst, Weight: o.Weight, Until: o.Until, Ends: o.Ends, Ended: o.Ended(), Says: json.RawMessage(o.Change.String())}
	if o.Window != nil {
		v.Window = o.Window.String()
	}
	if o.Mode != nil {
		v.Mode = o.Mode.String()
	}
	if o.Last != nil {
		v.Who, v.Why, v.At = o.Last.Who, o.Last.Why, o.Last.At
	}
	return encoded(v)
}

func (o Override) Ended() bool { return o.At(time.Now()) == rule.KeyOverride{} }

// String returns what the override says, for what, and who has made it, when and why.
func (o Override) String() string {
	of := "the rule"
	if o.Keys {
		of = printed.Text(o.Pattern)
	} else if o.Shares {
		of = "share " + printed.Text(o.Pattern)
	} else if o.Rule == override.All {
		of = "all limits"
	}
	text := fmt.Sprintf("%v for %s", o.Change, of)
	if o.Last != nil {
		text += fmt.Sprintf(", by %s at %s%s", cmp.Or(o.Last.Who, "somebody"), o.Last.At.UTC().Format(time.RFC3339), strings.TrimSuffix(": "+o.Last.Why, ": "))
	}
	return text
}

func patternOf(t override.Target) *string {
	if !t.Keys && !t.Shares {
		return nil
	}
	return &t.Pattern
}

// encoded returns a value in JSON, in which names are as they are written.
func encoded(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return text.Bytes(), err
}

func TargetText(t override.Target) string {
	if t.Rule == override.All {
		return "all limits"
	}
	if t.Shares {
		return fmt.Sprintf("share %s of rule %s", printed.Text(t.Pattern), printed.Text(t.Rule))
	}
	if !t.Keys && strings.HasSuffix(t.Rule, "*") {
		return "rules " + printed.Text(t.Rule)
	}
	if t.Keys && t.Pattern != "" {
		return fmt.Sprintf("%s of rule %s", printed.Text(t.Pattern), printed.Text(t.Rule))
	}
	return "rule " + printed.Text(t.Rule)
}
