package contest

import (
	"context"
	"fmt"

	"github.com/rategen/rategen/bench/internal/limiters"
	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/internal/progress"
)

// Local has limiters in memory answer all cases. One of them has Redis refuse
// its calls once a second, for which it needs the server.
func (p Plan) Local(ctx context.Context, line *progress.Line, server limiters.Server) ([]Table, error) {
	var tables []Table
	for i, c := range LocalCases {
		heading := inMemory + c.String()
		if !p.Part.heading(heading) {
			continue
		}
		line.Steps(i, len(LocalCases), heading)
		table, err := p.localCase(ctx, c, p.Part.local(limiters.Locals(server)))
		if err != nil {
			return nil, fmt.Errorf("%v: %w", c, err)
		}
		tables = append(tables, table)
	}
	return tables, nil
}

func (p Plan) localCase(ctx context.Context, c Case, all []limiters.Local) (Table, error) {
	var (
		table   = Table{Case: c}
		takes   []load.Take
		refuses []bool
		callers = load.Callers{Count: c.Callers, Keys: keys(c.Keys)}
	)
	for _, l := range all {
		if l.OnlyRefuses && c.Kind != Full || l.MaxKeys > 0 && c.Keys > l.MaxKeys {
			continue
		}
		take, stop, err := l.New(c.local(), c.Keys)
		if err != nil {
			return Table{}, fmt.Errorf("%s: %w", l.Name, err)
		}
		defer stop()
		table.Rows = append(table.Rows, Row{Name: l.Name, Own: l.Own})
		takes, refuses = append(takes, take), append(refuses, l.OnlyRefuses)
		if c.Kind != Full {
			ask(ctx, callers.Keys, take) // so that no map grows later
		} else if err := fill(ctx, callers.Keys, take); err != nil {
			return Table{}, fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	for round := range p.RoundsLocal {
		for _, i := range order(round, len(takes)) {
			if err := ctx.Err(); err != nil {
				return Table{}, err
			}
			if refuses[i] {
				ask(ctx, callers.Keys, takes[i]) // what it knows is too old by now
			}
			callers.Run(ctx, p.MeasureLocal/4, takes[i])
			sample := callers.Run(ctx, p.MeasureLocal, takes[i])
			table.Rows[i].add(sample, 0)
			table.Rows[i].judge(c, sample)
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
