package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// MostTenants is how many tenants of a key are named.
const MostTenants = 20

// A Tenant is one of those that share a key.
type Tenant struct {
	Name string `json:"name"` // as patterns of keys are written
	// Used is what it has used of late by its weight: it decays by 1/e in a window.
	Used      float64 `json:"used_by_weight"`
	BlockedMS int64   `json:"blocked_for_ms,omitempty"`
}

// Tenants returns those of a key of a rule that have used most of late, and how many there are.
func Tenants(ctx context.Context, l *runtime.Limiter, r *runtime.Rule, key *runtime.Key) (all []Tenant, total int64, err error) {
	if r.Headroom == 0 {
		return nil, 0, nil
	}
	found, total, err := bridge.LimiterOf(l).Tenants(ctx, LimitOf(r, key), MostTenants)
	for _, t := range found {
		name := t.Name
		if parsed, err := rule.ParseKey(name); err == nil {
			name = parsed.Pattern()
		}
		all = append(all, Tenant{name, t.Used, t.Rest.Milliseconds()})
	}
	return all, total, err
}

// String names the tenant, and says what it has used.
func (t Tenant) String() string { return t.Name + ", used " + t.Said() }

// Said says what a tenant has used.
func (t Tenant) Said() string {
	text := fmt.Sprintf("%.3g by weight", t.Used)
	if t.BlockedMS > 0 {
		text += ", blocked for " + ShortDuration(time.Duration(t.BlockedMS)*time.Millisecond)
	}
	return text
}
