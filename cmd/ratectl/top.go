package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A topLine is how many callers of a rule are in which state.
type topLine struct {
	Rule    string `json:"rule"`
	Keys    int    `json:"keys"`
	Blocked int    `json:"blocked"`
	Refused int    `json:"refused"`
	Near    int    `json:"near"`
	Worst   string `json:"worst_key"` // that of the keys which is refused most
	worst   keyState
}

func (l topLine) row() []string {
	n := strconv.Itoa
	return []string{l.Rule, n(l.Blocked), n(l.Refused), n(l.Near), n(l.Keys), l.Worst}
}

// top prints the rules again and again, those that refuse most first. On a terminal they
// can be sorted, filtered and opened. An interrupt is how it ends.
func top(ctx context.Context, o *operator, _ []string) error {
	if o.every < 100*time.Millisecond || o.count < 0 {
		return usagef("-every is at least 100ms, and -count not negative")
	}
	if o.count == 0 && !o.clears {
		o.count = 1
	}
	if o.terminal != nil && o.count == 0 && !o.json() {
		restore, err := o.terminal.raw()
		if err != nil {
			return fmt.Errorf("keys of the terminal cannot be read, -count prints tables without them: %w", err)
		}
		defer restore()
		var quit context.CancelFunc
		ctx, quit = context.WithCancel(ctx)
		defer quit()
		fmt.Fprint(o.out, "\x1b[?1049h\x1b[?25l") // another screen, without a cursor
		defer fmt.Fprint(o.out, "\x1b[?25h\x1b[?1049l")
		o.shows, o.most = false, 1000
		o.screen = newScreen(o.out, o.terminal.size, quit)
		go o.screen.listen(o.in)
	}
	show := o.topOfRedis
	if o.page != "" {
		show = o.topOfPage
	}
	if err := show(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

// topOfRedis prints what is counted in Redis. After a first table, what fails is tried
// again.
func (o *operator) topOfRedis(ctx context.Context) error {
	for n := 1; ; n++ {
		var err error
		if n > 1 {
			err = o.follow(ctx)
		}
		if rule := o.screen.rule(); err == nil && rule != "" {
			err = o.opened(ctx, rule)
		} else if err == nil {
			var lines []topLine
			if lines, err = o.callers(ctx); err == nil {
				err = repeated(o, "callers in Redis", "RULE BLOCKED REFUSED NEAR KEYS WORST", lines, topLine.row)
			}
		}
		switch {
		case err == nil:
		case n == 1 || ctx.Err() != nil || n == o.count:
			return err
		default:
			o.reportRetry(err)
		}
		if n == o.count || !o.pause(ctx) {
			return nil
		}
	}
}

// callers counts the callers of all rules by their states.
func (o *operator) callers(ctx context.Context) ([]topLine, error) {
	index := make(map[*runtime.Rule]*topLine)
	lines := make([]topLine, len(o.known))
	for i, d := range o.known {
		lines[i] = topLine{Rule: d.Name, Worst: "-"}
		index[d.Rule] = &lines[i]
	}
	err := o.walk(ctx, o.known, func(d declared, s keyState) {
		l := index[d.Rule]
		l.Keys++
		switch s.State {
		case "blocked", "held":
			l.Blocked++
		case "refused":
			l.Refused++
		case "near":
			l.Near++
		}
		if l.Keys == 1 || worse(s, l.worst) < 0 {
			l.worst, l.Worst = s, s.Key
		}
	})
	slices.SortStableFunc(lines, func(a, b topLine) int {
		if c := b.Blocked + b.Refused - a.Blocked - a.Refused; c != 0 {
			return c
		}
		if a.Near != b.Near {
			return b.Near - a.Near
		}
		return strings.Compare(a.Rule, b.Rule)
	})
	return lines, err
}

// opened prints the keys of a rule that somebody has opened, by the name that was shown.
func (o *operator) opened(ctx context.Context, name string) error {
	i := slices.IndexFunc(o.known, func(d declared) bool { return printable(d.Name) == name })
	d, err := o.rule(o.known[max(0, i)].Name)
	if err != nil {
		return err
	}
	all, _ := wantedStates("")
	found, matched, _, err := o.keysOf(ctx, d, all)
	if err != nil {
		return err
	}
	return repeated(o, fmt.Sprintf("%d of %d keys of %s", len(found), matched, printable(name)), keyHead, found, keyState.row)
}

// repeated prints a table in the place of the one before, if there is a screen.
func repeated[T any](o *operator, title, head string, values []T, row func(T) []string) error {
	title += ", " + time.Now().Format(time.TimeOnly)
	if o.screen != nil {
		rows := make([][]string, len(values))
		for i, v := range values {
			for _, cell := range row(v) {
				rows[i] = append(rows[i], printable(cell))
			}
		}
		o.screen.show(view{title, strings.Fields(head), rows}, nil)
		return nil
	}
	if o.clears && !o.json() {
		fmt.Fprintf(o.out, "\033[H\033[2J%s\n", title)
	}
	return printEach(o, head, values, row)
}

// reportRetry shows the error because of which there is no new table.
func (o *operator) reportRetry(err error) {
	if o.screen != nil {
		o.screen.show(view{}, err)
		return
	}
	o.logger().Printf("%s; trying again in %v", visible(err.Error()), o.every)
}

// pause waits for the next table, and reports false if it is to end.
func (o *operator) pause(ctx context.Context) bool {
	timer := time.NewTimer(o.every)
	defer timer.Stop()
	var wake chan struct{}
	if o.screen != nil {
		wake = o.screen.wake
	}
	select {
	case <-timer.C:
		return true
	case <-wake:
		return true
	case <-ctx.Done():
		return false
	}
}
