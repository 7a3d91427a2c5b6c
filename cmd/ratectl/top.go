package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/runtime"
)

// A topCommand prints the rules again and again, those that refuse most first. On a terminal they
// can be sorted, filtered and opened. An interrupt is how it ends.
type topCommand struct {
	live
	by string
}

func (c *topCommand) about() about {
	return about{
		name: "top", short: "show the rules live, those that refuse most first", needs: judgesKeys,
		long: "Counts the callers in Redis that are refused, blocked or near their limits now, over all programs. It reads every key of the rules, so choose -every accordingly. With -page it shows the calls a second that the program behind a live page admits and refuses; RATECTL_PAGE_AUTHORIZATION becomes the header Authorization. With -by calls it shows which keys Redis is asked about most, by what processes have told in the last five seconds, and what helps. " +
			"On a terminal s sorts by the next column, / filters, the arrows select a rule, enter shows its keys or rates, esc goes back, q quits. Without a terminal, or with -count, it prints plain tables.",
		flags: []cli.Flag{
			duration(&c.every, "every", 2*time.Second, "time between two tables"),
			number(&c.count, "count", 0, 0, "end after `n` tables (default: 1 if standard output is no terminal, and otherwise never)"),
			text(&c.by, "by", "sort by `calls`: the keys that Redis is asked about most, in place of the rules"),
			c.nearFlag(), c.sourced(text(&c.page, "page", "show the rates of the live page at this `URL` (RATECTL_PAGE)")),
		},
	}
}

func (c *topCommand) run(ctx context.Context, _ []string) error {
	if c.every < 100*time.Millisecond {
		return usagef("-every is at least 100ms")
	}
	if c.by != "" && (c.by != "calls" || c.page != "" && c.given("page")) {
		return usagef("-by %q: there is -by calls, without -page", c.by)
	}
	if c.count == 0 && !c.clears {
		c.count = 1
	}
	if c.terminal != nil && c.count == 0 && !c.json() {
		restore, err := c.terminal.raw()
		if err != nil {
			return foreign{fmt.Errorf("keys of the terminal cannot be read, -count prints tables without them: %w", err)}
		}
		defer restore()
		var quit context.CancelFunc
		ctx, quit = context.WithCancel(ctx)
		defer quit()
		fmt.Fprint(c.out, "\x1b[?1049h\x1b[?25l") // another screen, without a cursor
		defer fmt.Fprint(c.out, "\x1b[?25h\x1b[?1049l")
		c.shows = false
		c.screen = newScreen(c.out, c.terminal.size, quit)
		go c.screen.listen(c.in)
	}
	show := c.ofRedis
	if c.page != "" && c.by == "" {
		show = c.ofPage
	}
	err := show(ctx)
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// ofRedis prints what is counted in Redis. After a first table, what fails is tried again.
func (c *topCommand) ofRedis(ctx context.Context) error {
	for n := 1; ; n++ {
		var err error
		if n > 1 && c.by == "" {
			err = c.Renew(ctx)
		}
		if c.by != "" {
			err = c.hotKeys(ctx)
		} else if rule := c.screen.rule(); err == nil && rule != "" {
			err = c.opened(ctx, rule)
		} else if err == nil {
			var lines []topLine
			if lines, err = c.callers(ctx); err == nil {
				err = repeated(&c.live, "callers in Redis", "RULE BLOCKED REFUSED NEAR UNKNOWN KEYS WORST", lines, topLine.row)
			}
		}
		if err != nil && (n == 1 || ctx.Err() != nil || n == c.count) {
			return err
		}
		if err != nil {
			c.reportRetry(c.explained(err))
		}
		if n == c.count || !c.pause(ctx) {
			return nil
		}
	}
}

// A topLine is how many callers of a rule are in which state.
type topLine struct {
	Rule    string `json:"rule"` // its name, or its prefix if another has the name
	Keys    int    `json:"keys"`
	Blocked int    `json:"blocked"`
	Refused int    `json:"refused"`
	Near    int    `json:"near"`
	Unknown int    `json:"unknown"`           // since calls bring their max
	Worst   string `json:"worst_key"`         // that of the keys which is refused most
	Differs string `json:"differs,omitempty"` // what processes have declared, if not all the same
	worst   operate.State
}

// label is the rule, with what processes have of it if that differs.
func (l topLine) label() string {
	if l.Differs == "" {
		return l.Rule
	}
	return fmt.Sprintf("%s (%s)", l.Rule, l.Differs)
}

func (l topLine) row() []string {
	return rowOf(l.label(), l.Blocked, l.Refused, l.Near, l.Unknown, l.Keys, l.Worst)
}

// line returns the line of a rule without callers.
func (c *topCommand) line(d operate.Rule) topLine {
	differs, _ := c.Differing(d.Name)
	return topLine{Rule: d.Reference, Worst: "-", Differs: differs.Limits()}
}

// callers counts the callers of all rules by their states.
func (c *topCommand) callers(ctx context.Context) ([]topLine, error) {
	index := make(map[*runtime.Rule]*topLine)
	lines := make([]topLine, len(c.Rules))
	c.Compare(ctx)
	if c.screen == nil { // which has room for rules alone
		c.sayDiffering(c.Names()...)
	}
	for i, d := range c.Rules {
		lines[i] = c.line(d)
		index[d.Rule] = &lines[i]
	}
	err := c.Walk(ctx, c.Rules, func(d operate.Rule, s operate.State) {
		l := index[d.Rule]
		l.Keys++
		switch s.State {
		case operate.Blocked, operate.Held:
			l.Blocked++
		case operate.Refused:
			l.Refused++
		case operate.Near:
			l.Near++
		case operate.Unknown:
			l.Unknown++
		}
		if l.Keys == 1 || operate.Worse(s, l.worst) < 0 {
			l.worst, l.Worst = s, s.Key
		}
	})
	slices.SortStableFunc(lines, func(a, b topLine) int {
		return cmp.Or(b.Blocked+b.Refused-a.Blocked-a.Refused, b.Near-a.Near, strings.Compare(a.Rule, b.Rule))
	})
	return lines, err
}

// opened prints the keys of a rule that somebody has opened, by what was shown of it.
func (c *topCommand) opened(ctx context.Context, shown string) error {
	i := slices.IndexFunc(c.Rules, func(d operate.Rule) bool { return printed.Text(c.line(d).label()) == shown })
	if i < 0 { // processes have another form of it by now
		return nothingf("rule %s is not as it was: esc goes back", shown)
	}
	found, err := c.Core.Keys(ctx, c.Rules[i], operate.States, 1000)
	if err != nil {
		return err
	}
	return repeated(&c.live, fmt.Sprintf("%d of %d keys of %s", len(found.Top), found.Matched, shown), keyHead, found.Top, stateRow)
}

// hotKeys prints the keys that Redis is asked about most.
func (c *topCommand) hotKeys(ctx context.Context) error {
	processes, err := c.Processes(ctx)
	if err != nil {
		return err
	}
	calls := operate.CallsOf(processes)
	if len(calls.Keys) == 0 {
		return nothingf("no key is told by the %d processes that tell their calls in %s, %.0f of which a second went to Redis: processes with rules do every five seconds, unless they have WithoutReports or WithRefusals(0, nil)",
			calls.Processes, operate.Namespaces(c.Namespace), calls.Asked)
	}
	for i, k := range calls.Keys {
		if n := slices.IndexFunc(c.Rules, func(d operate.Rule) bool { return d.Name == k.Rule }); n >= 0 {
			calls.Keys[i].Remedy = operate.Remedy(c.Rules[n].Rule)
		}
	}
	return repeated(&c.live, fmt.Sprintf("%.0f calls a second that Redis decides, told by %d processes", calls.Asked, calls.Processes), "RULE KEY CALLS/S SHARE PROCESSES REMEDY", calls.Keys, func(k operate.HotKey) []string {
		return rowOf(k.Rule, k.Key, fmt.Sprintf("%.0f", k.PerSecond), fmt.Sprintf("%.0f%%", 100*k.Share), k.Processes, cmp.Or(k.Remedy, "-"))
	})
}
