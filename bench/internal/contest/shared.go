package contest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/limiters"
	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/internal/progress"
)

// Shared has limiters over Redis answer all cases.
func (p Plan) Shared(ctx context.Context, line *progress.Line, server limiters.Server) ([]Table, error) {
	var tables []Table
	for i, c := range SharedCases {
		heading := overRedis + c.String()
		if !p.Part.heading(heading) {
			continue
		}
		contestants := append(limiters.Rategen(), limiters.Peers()...)
		if c.Kind == Hot {
			contestants = append(limiters.Leased(), contestants...)
		}
		line.Steps(i, len(SharedCases), heading)
		table, err := p.sharedCase(ctx, server, c, p.Part.shared(contestants))
		if err != nil {
			return nil, fmt.Errorf("%v: %w", c, err)
		}
		tables = append(tables, table)
	}
	return tables, nil
}

// Curve has limiters over Redis answer calls of ever more callers.
func (p Plan) Curve(ctx context.Context, line *progress.Line, server limiters.Server) ([]Table, error) {
	short := p
	short.Rounds, short.Warm, short.Measure = p.RoundsCurve, p.MeasureCurve/5, p.MeasureCurve
	var tables []Table
	for i, n := range p.Callers {
		c := Case{n, 1000, Distinct}
		heading := curveOver + c.String()
		if !p.Part.heading(heading) {
			continue
		}
		line.Steps(i, len(p.Callers), heading)
		table, err := short.sharedCase(ctx, server, c, p.Part.shared(slices.Concat(limiters.Rategen(), limiters.Budgets(), limiters.Divided(), limiters.Peers(), limiters.ByHand())))
		if err != nil {
			return nil, fmt.Errorf("%v: %w", c, err)
		}
		tables = append(tables, table)
	}
	return tables, nil
}

func (p Plan) sharedCase(ctx context.Context, server limiters.Server, c Case, contestants []limiters.Shared) (Table, error) {
	if err := server.Client.FlushAll(ctx).Err(); err != nil {
		return Table{}, err
	}
	table := Table{Case: c, Rows: make([]Row, len(contestants))}
	takes := make([]load.Take, len(contestants))
	callers := load.Callers{Count: c.Callers, Keys: keys(c.Keys)}
	for i, l := range contestants {
		table.Rows[i] = Row{Name: l.Name, Own: l.Own, ByHand: l.ByHand}
		var err error
		if takes[i], err = l.New(server, c.shared()); err != nil {
			return Table{}, fmt.Errorf("%s: %w", l.Name, err)
		}
		if c.Kind == Full && !l.Floor {
			if err := fill(ctx, callers.Keys, takes[i]); err != nil {
				return Table{}, fmt.Errorf("%s: %w", l.Name, err)
			}
		}
	}
	rounds := p.Rounds
	if c.Kind == Full {
		rounds = p.RoundsFull
	}
	for round := range rounds {
		for _, i := range order(round, len(contestants)) {
			if err := ctx.Err(); err != nil {
				return Table{}, err
			}
			measure := p.Measure
			callers.Time = 1
			if c.Kind == Full && contestants[i].Recalls {
				measure, callers.Time = p.Recall, 16
			}
			if contestants[i].Leases {
				callers.Time = 16
			}
			callers.Run(ctx, p.Warm, takes[i])
			before, err := processorTime(ctx, server.Client)
			if err != nil {
				return Table{}, err
			}
			sample := callers.Run(ctx, measure, takes[i])
			after, err := processorTime(ctx, server.Client)
			if err != nil {
				return Table{}, err
			}
			row := &table.Rows[i]
			row.add(sample, after-before)
			if !contestants[i].Floor {
				row.judge(c, sample)
			}
		}
	}
	return table, nil
}

// fill asks about every key until it has no room. It bears with a store that
// gives no answer for a while.
func fill(ctx context.Context, keys []string, take load.Take) error {
	const (
		callers  = 16
		patience = 10 * time.Second
	)
	began := time.Now()
	var (
		next atomic.Int64
		full atomic.Int64
		all  sync.WaitGroup
	)
	for range callers {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(keys) {
					return
				}
				for asked := int64(0); asked < 2*limiters.NoRoom.Level.Max; {
					a := take(ctx, keys[i])
					if a == load.Refused || a == load.Recalled {
						full.Add(1)
						break
					}
					if a != load.Failed {
						asked++
					} else if time.Since(began) > patience {
						break
					} else {
						time.Sleep(10 * time.Millisecond)
					}
				}
			}
		})
	}
	all.Wait()
	if n := int(full.Load()); n < len(keys) {
		return fmt.Errorf("%d of %d keys have no end of room", len(keys)-n, len(keys))
	}
	return nil
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
