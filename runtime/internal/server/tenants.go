package server

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime/internal/private"
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
		ask("zrangebyscore", key, "(-inf", "("+least, "withscores", "limit", "0", strconv.Itoa(most)),
	}
	client.Do(ctx, commands)
	if err := rediswire.First(commands); err != nil {
		return nil, 0, private.Hide(err)
	}
	now, state := timeOf(commands[0].Value).UnixMicro(), ""
	if first, _ := commands[1].Value.([]any); len(first) > 0 {
		state, _ = first[0].(string)
	}
	rests := map[string]time.Duration{}
	var blocked []string
	for member, score := range pairsOf(commands[4].Value) {
		end, _ := strconv.ParseFloat(score, 64)
		if rest := -int64(end) - now; rest > 0 && len(member) > 1 {
			rests[member[1:]] = time.Duration(rest) * time.Microsecond
			blocked = append(blocked, member[1:])
		}
	}
	const length = 56 // of the numbers of shares.lua
	if total, _ = commands[2].Value.(int64); total > 0 && len(state) >= length && state[0] == 3 {
		number := func(from, bytes int) (n int64) {
			for _, b := range []byte(state[from : from+bytes]) {
				n = n<<8 | int64(b)
			}
			return n
		}
		base, start, window := number(37, 5), number(42, 7), number(49, 7)
		zero := float64(base) + float64(max(now, number(8, 7))-start)/float64(window)
		for name, score := range pairsOf(commands[3].Value) {
			rank, _ := strconv.ParseFloat(score, 64)
			all = append(all, bridge.Tenant{Name: name, Used: math.Exp(rank - zero), Rest: rests[name]})
			delete(rests, name)
		}
	}
	for _, name := range blocked {
		if rest, is := rests[name]; is {
			all = append(all, bridge.Tenant{Name: name, Rest: rest})
		}
	}
	return all, total, nil
}
