package contest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/rategen/rategen/bench/internal/limiters"
	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/internal/progress"
)

// A group is cases of one kind, and who answers them.
type group struct {
	over        string // how headings begin
	plan        Plan
	cases       []Case
	contestants []limiters.Limiter
	tables      *[]Table
}

// groups returns all cases there are, of which the tables become parts of a result.
func (p Plan) groups(r *Result) []group {
	short, local, curve := p, p, []Case{}
	short.Rounds, short.Warm, short.Measure = p.RoundsCurve, p.MeasureCurve/5, p.MeasureCurve
	local.Rounds, local.RoundsFull, local.Warm, local.Measure = p.RoundsLocal, p.RoundsLocal, p.MeasureLocal/4, p.MeasureLocal
	for _, n := range p.Callers {
		curve = append(curve, Case{Callers: n, Keys: 1000, Kind: Distinct})
	}
	ours, peers := limiters.Rategen(), limiters.Peers()
	return []group{
		{overRedis, p, SharedCases, slices.Concat(limiters.Leased(), ours, peers), &r.Shared},
		{curveOver, short, curve, slices.Concat(ours, limiters.Budgets(), limiters.Divided(), peers, limiters.ByHand()), &r.Curve},
		{inMemory, local, LocalCases, limiters.Locals(), &r.Local},
	}
}

// Run has limiters answer all cases.
func (p Plan) Run(ctx context.Context, line *progress.Line, server limiters.Server) (*Result, error) {
	result := new(Result)
	var err error
	if result.Facts, err = p.Facts(ctx, server.Client); err != nil {
		return nil, err
	}
	for _, g := range p.groups(result) {
		for i, c := range g.cases {
			heading := g.over + c.String()
			if !p.Part.Cases.MatchString(heading) {
				continue
			}
			line.Steps(i, len(g.cases), heading)
			table, err := g.plan.table(ctx, server, c, p.Part.turns(g.contestants))
			if err != nil {
				return nil, fmt.Errorf("%v: %w", c, err)
			}
			*g.tables = append(*g.tables, table)
		}
	}
	line.Show("sizes of keys")
	if result.Sizes, err = p.Sizes(ctx, server); err != nil {
		return nil, err
	}
	result.Busy = Busy()
	return result, nil
}

// table has limiters answer a case in turn.
func (p Plan) table(ctx context.Context, server limiters.Server, c Case, contestants []limiters.Limiter) (Table, error) {
	if err := server.Client.FlushAll(ctx).Err(); err != nil {
		return Table{}, err
	}
	contestants = slices.DeleteFunc(contestants, func(l limiters.Limiter) bool {
		return l.Leases && c.Kind != Hot || l.OnlyRefuses && c.Kind != Full || l.MaxKeys > 0 && c.Keys > l.MaxKeys
	})
	server.Keys = c.Keys
	var cleanups []func()
	server.Cleanup = func(f func()) { cleanups = append(cleanups, f) }
	defer func() {
		for _, f := range cleanups {
			f()
		}
	}()
	table := Table{Case: c, Rows: make([]Row, len(contestants))}
	takes := make([]load.Take, len(contestants))
	callers := load.Callers{Count: c.Callers, Keys: keys(c.Keys)}
	for i, l := range contestants {
		table.Rows[i] = Row{Name: l.Name, Own: l.Own, ByHand: l.ByHand}
		var err error
		takes[i], err = l.New(server, c.limits())
		if err == nil && c.Kind == Full && !l.Floor {
			err = fill(ctx, callers.Keys, takes[i])
		}
		if err != nil {
			return Table{}, fmt.Errorf("%s: %w", l.Name, err)
		}
		if c.InMemory && c.Kind != Full {
			ask(ctx, callers.Keys, takes[i]) // so that no map grows later
		}
	}
	rounds := p.Rounds
	if c.Kind == Full {
		rounds = p.RoundsFull
	}
	for round := range rounds {
		for _, i := range order(round, len(contestants)) {
			l, measure := contestants[i], p.Measure
			callers.Time = 1
			switch {
			case c.InMemory:
				callers.Time = 0
			case c.Kind == Full && l.Recalls:
				measure, callers.Time = p.Recall, 16
			case l.Leases:
				callers.Time = 16
			}
			if l.OnlyRefuses {
				ask(ctx, callers.Keys, takes[i]) // what it knows is too old by now
			}
			callers.Run(ctx, p.Warm, takes[i])
			before, err := processorTime(ctx, server.Client)
			sample := callers.Run(ctx, measure, takes[i])
			after, err2 := processorTime(ctx, server.Client)
			if err := cmp.Or(err, err2, ctx.Err()); err != nil {
				return Table{}, err
			}
			row := &table.Rows[i]
			row.add(sample, after-before)
			if !l.Floor {
				row.judge(c, sample)
			}
		}
	}
	return table, nil
}

// ask asks once about every key.
func ask(ctx context.Context, keys []string, take load.Take) {
	for _, key := range keys {
		take(ctx, key)
	}
}

// fill asks about every key until it has no room. It bears with a store that
// gives no answer for a while.
func fill(ctx context.Context, keys []string, take load.Take) error {
	patience := time.Now().Add(10 * time.Second)
	var all errgroup.Group
	all.SetLimit(16)
	for _, key := range keys {
		all.Go(func() error {
			for asked := int64(0); asked < 2*limiters.NoRoom.Level.Max; {
				switch take(ctx, key) {
				case load.Refused, load.Recalled:
					return nil
				case load.Admitted:
					asked++
				default:
					if time.Now().After(patience) {
						return fmt.Errorf("no answer about %s", key)
					}
					time.Sleep(10 * time.Millisecond)
				}
			}
			return fmt.Errorf("the room of %s has no end", key)
		})
	}
	return all.Wait()
}

// processorTime returns how much a Redis has used since it started.
func processorTime(ctx context.Context, client *redis.Client) (used time.Duration, err error) {
	info := client.InfoMap(ctx, "cpu")
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(info.Item("CPU", name), 64)
		if err != nil {
			return 0, fmt.Errorf("info of Redis: %s: %w", name, errors.Join(info.Err(), err))
		}
		used += time.Duration(seconds * float64(time.Second))
	}
	return used, nil
}
