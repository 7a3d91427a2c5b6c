package script

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/lua"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// Load makes a server know the scripts that decide, settle and renew calls with one
// limit of some algorithms, by themselves and in batches. All go in one trip.
func (l *Library) Load(ctx context.Context, client redis.UniversalClient, limits []terms.Terms) error {
	sets := make(map[uint]bool)
	for i := range limits {
		set := uint(1) << scripts[limits[i].Algorithm]
		if limits[i].Block > 0 {
			set |= lua.Block
		}
		sets[set], sets[set|lua.One], sets[set|lua.Settle] = true, true, true
		if limits[i].Algorithm == terms.Permits {
			sets[set|lua.Renew] = true
		}
	}
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for set := range sets {
			p.ScriptLoad(ctx, l.text(set).source())
		}
		return nil
	})
	return explained(err)
}
