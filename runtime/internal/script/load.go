package script

import (
	"context"

	"github.com/rategen/rategen/lua"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

// Load makes a server know the scripts that decide, settle and renew calls with one
// limit of some algorithms, by themselves and in batches. All go in one trip.
func (l *Library) Load(ctx context.Context, server rediswire.Server, limits []terms.Terms) error {
	sets := make(map[uint]bool)
	for i := range limits {
		set := uint(1) << scripts[limits[i].Algorithm]
		if limits[i].Block > 0 {
			set |= lua.Block
		}
		if limits[i].Keep > 0 {
			set |= lua.Past
		}
		sets[set], sets[set|lua.One], sets[set|lua.Settle] = true, true, true
		if limits[i].Lapses() {
			sets[set|lua.Renew] = true
		}
	}
	var commands []rediswire.Command
	for set := range sets {
		commands = append(commands, rediswire.Command{Args: []string{"script", "load", l.text(set).source()}})
	}
	server.Do(ctx, commands)
	return explained(rediswire.First(commands))
}
