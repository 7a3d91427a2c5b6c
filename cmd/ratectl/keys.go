package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/runtime/rule"
)

// A keysCommand lists the keys of a rule, the most refused first.
type keysCommand struct {
	session
	filter string
	limit  int
}

func (c *keysCommand) about() about {
	return about{
		name: "keys", args: "RULE", short: "list the callers of a rule, the most refused first", needs: judgesKeys, min: 1, max: 1,
		long: "Walks over the database and shows what a call of each key would find, without charging it, and the shares that divide a key, those first that have used most of late." +
			" A rule in shadow mode is shown as if it enforced its limit.",
		flags: []cli.Flag{
			text(&c.filter, "state", "only keys in these `states`, separated by commas: near, refused, held (since a peer has asked for it), blocked, broken (by another program), ok, off"),
			limitFlag(&c.limit), c.nearFlag(), c.maxFlag(),
		},
	}
}

func (c *keysCommand) run(ctx context.Context, args []string) error {
	d, err := c.Rule(args[0])
	if err != nil {
		return err
	}
	wanted, err := wantedStates(c.filter)
	if err != nil {
		return err
	}
	if d.ByCall != "" && c.Max == 0 && c.filter != "" {
		return usagef("calls of rule %s bring a max of their own, %s: say with -max which one to judge by", d.Name, d.ByCall)
	}
	c.Compare(ctx)
	keys, err := c.Core.Keys(ctx, d, wanted, c.limit)
	if err != nil {
		return err
	}
	if keys.Total == 0 {
		return c.NoKeys(ctx, d)
	}
	c.sayDiffering(d.Name)
	lines := make([]keyLine, len(keys.Top))
	for i, k := range keys.Top {
		lines[i].State = k
		if key, err := rule.ParseKey(k.Key); err == nil && d.Headroom != 0 {
			if lines[i].Shares, lines[i].SharesTotal, err = operate.Tenants(ctx, c.Limiter, d.Rule, key); err != nil {
				return err
			}
		}
	}
	if err := printKeys(&c.printer, lines); err != nil {
		return err
	}
	if len(keys.Top) < keys.Matched {
		c.logger().Printf("these are the first %d of %d keys, see -limit and -state", len(keys.Top), keys.Matched)
	}
	return nil
}

// A keyLine is a key, and the shares of it that have used most of late, if its rule is divided.
type keyLine struct {
	operate.State
	Shares      []operate.Tenant `json:"shares,omitempty"`
	SharesTotal int64            `json:"shares_total,omitempty"`
}

// printKeys prints keys, and a row for each of their shares below them.
func printKeys(p *printer, lines []keyLine) error {
	if !slices.ContainsFunc(lines, func(l keyLine) bool { return l.SharesTotal > 0 || l.Shares != nil }) || p.json() {
		return printEach(p, keyHead, lines, func(l keyLine) []string { return stateRow(l.State) })
	}
	var rows [][]string
	for _, l := range lines {
		rows = append(rows, stateRow(l.State))
		for _, s := range l.Shares {
			rows = append(rows, []string{"  share " + printed.Text(s.Name), "-", s.Said(), "-", "-"})
		}
		if n := l.SharesTotal - int64(len(l.Shares)); n > 0 {
			rows = append(rows, []string{fmt.Sprintf("  and %d shares", n), "-", "-", "-", "-"})
		}
	}
	return p.printTable(keyHead, rows)
}

// keyHead are the headings of keys.
const keyHead = "KEY STATE USED RETRY RESET"

// wantedStates returns the states that a filter names: all if it is empty.
func wantedStates(filter string) ([]string, error) {
	if filter == "" {
		return operate.States, nil
	}
	wanted := strings.Split(filter, ",")
	for _, state := range wanted {
		if !slices.Contains(operate.States, state) {
			return nil, usagef("-state %q: write some of %s, separated by commas", state, strings.Join(operate.States, ", "))
		}
	}
	return wanted, nil
}
