package server

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

// Tenants returns up to most tenants of a key that have used something, those who have used most first, and how
// many there are. Behind them are up to most that are blocked and have used nothing.
func Tenants(ctx context.Context, client rediswire.Client, key string, most int) (all []bridge.Tenant, total int64, err error) {
	const least = "-1000000000000" // of scores that are not those of blocks
	ask := func(args ...string) rediswire.Command { return rediswire.Command{Args: args, Key: 1} }
	commands := []rediswire.Command{
		{Args: []string{"time"}}, ask("zrange", key, "0", "0"), ask("zcount", key, least, "+inf"),
		ask("zrevrangebyscore", key, "+inf", least, "withscores", "limit", "0", strconv.Itoa(most)),
		ask("zrangebyscore", key, "-9007199254740992", "("+least, "withscores", "limit", "0", strconv.Itoa(most)),
	}
	client.Do(ctx, commands)
	if err := rediswire.First(commands); err != nil {
		return nil, 0, private.Hide(err)
	}
	ranks := func(reply any, kind string) (all []terms.Rank) {
		for member, score := range pairsOf(reply) {
			n, _ := strconv.ParseFloat(score, 64)
			all = append(all, terms.Rank{Name: strings.TrimPrefix(member, kind), Score: n})
		}
		return all
	}
	now, state, zero := timeOf(commands[0].Value).UnixMicro(), "", 0.0
	if first, _ := commands[1].Value.([]any); len(first) > 0 {
		state, _ = first[0].(string)
	}
	const length = 56 // of the numbers of shares.lua
	if len(state) >= length && state[0] == 3 {
		number := func(from, bytes int) (n int64) {
			for _, b := range []byte(state[from : from+bytes]) {
				n = n<<8 | int64(b)
			}
			return n
		}
		base, start, window := number(37, 5), number(42, 7), number(49, 7)
		zero = float64(base) + float64(max(now, number(8, 7))-start)/float64(window)
	}
	total, _ = commands[2].Value.(int64)
	return TenantsOf(ranks(commands[3].Value, ""), ranks(commands[4].Value, "\x04"), now, zero), total, nil
}

// TenantsOf returns tenants by their scores, of which zero is that of one event, and behind them those that are
// blocked by then, by minus the ends of their blocks, and have no score.
func TenantsOf(ranks, blocks []terms.Rank, now int64, zero float64) (all []bridge.Tenant) {
	rests := map[string]time.Duration{}
	for _, b := range blocks {
		if rest := -int64(b.Score) - now; rest > 0 && b.Name != terms.Everybody {
			rests[b.Name] = terms.Micros(rest)
		}
	}
	for _, r := range ranks {
		all = append(all, bridge.Tenant{Name: r.Name, Used: math.Exp(r.Score - zero), Rest: rests[r.Name]})
		delete(rests, r.Name)
	}
	for _, b := range blocks {
		if rest, is := rests[b.Name]; is {
			all = append(all, bridge.Tenant{Name: b.Name, Rest: rest})
		}
	}
	return all
}
