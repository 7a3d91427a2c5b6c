package runtime

import (
	"context"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/server"
)

func (l lent) KeysOf(r *Rule) *bridge.KeyGroup {
	var tag server.Tag
	g := &bridge.KeyGroup{Prefix: plan.Start(l.plans.Namespace, r)}
	for e := range l.plans.Overrides().Effective(r).All() {
		most := e.Max
		if most == plan.Unset {
			most = r.Max
		}
		n := plan.NumbersOf(e.Rule)
		g.Expiry = max(g.Expiry, n.Longest(most))
		tag.Add(n.Tag())
	}
	g.Tag = tag
	return g
}

func (l lent) Tenants(ctx context.Context, limit Limit, most int) (all []bridge.Tenant, total int64, err error) {
	key := l.RedisKey(limit)
	if l.redis == nil || key == "" || limit.Rule.Headroom == 0 {
		return nil, 0, nil
	}
	found, total, err := server.Tenants(ctx, l.redis.client, key, most)
	for _, t := range found {
		all = append(all, bridge.Tenant(t))
	}
	return all, total, err
}

func (s lentStore) Survey(ctx context.Context, groups ...*bridge.KeyGroup) error {
	each := make([]server.Group, len(groups))
	for i, g := range groups {
		g.Keys, g.Bytes, g.Endless, g.Healed = 0, 0, 0, 0
		tag, _ := g.Tag.(server.Tag)
		each[i] = server.Group{Prefix: g.Prefix, Tag: tag, Expiry: g.Expiry, Found: func(f server.Found) { addKey(g, f) }}
	}
	return server.Survey(ctx, s.client, each...)
}

// addKey counts a key that a survey has found.
func addKey(g *bridge.KeyGroup, f server.Found) {
	g.Keys++
	g.Bytes += f.Bytes
	if f.Expiry == -1 {
		g.Endless++
	}
	if f.Healed {
		g.Healed++
	}
	if g.Each != nil {
		g.Each(bridge.FoundKey{Key: f.Key, Text: f.Text, Bytes: f.Bytes, Expiry: f.Expiry})
	}
}
