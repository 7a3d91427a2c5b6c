package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
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

// top prints the rules again and again, those that refuse most first. An interrupt
// is how it ends.
func top(ctx context.Context, o *operator, _ []string) error {
	if o.every < 100*time.Millisecond || o.count < 0 {
		return usagef("-every is at least 100ms, and -count not negative")
	}
	if o.count == 0 && !o.clears {
		o.count = 1
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
		var lines []topLine
		var err error
		if n > 1 {
			err = o.follow(ctx)
		}
		if err == nil {
			lines, err = o.callers(ctx)
		}
		switch {
		case err == nil:
			o.clear(fmt.Sprintf("callers in Redis, %s", time.Now().Format(time.TimeOnly)))
			if err := each(o, "RULE BLOCKED REFUSED NEAR KEYS WORST", lines, topLine.row); err != nil {
				return err
			}
		case n == 1 || ctx.Err() != nil || n == o.count:
			return err
		default:
			o.logger().Printf("%s; trying again in %v", visible(err.Error()), o.every)
		}
		if n == o.count || !o.pause(ctx) {
			return nil
		}
	}
}

// callers counts the callers of all rules by their states.
func (o *operator) callers(ctx context.Context) ([]topLine, error) {
	index := make(map[string]*topLine)
	lines := make([]topLine, len(o.known))
	for i, d := range o.known {
		lines[i] = topLine{Rule: d.Name, Worst: "-"}
		index[d.Prefix] = &lines[i]
	}
	err := o.walk(ctx, o.known, func(d declared, s keyState) {
		l := index[d.Prefix]
		l.Keys++
		switch s.State {
		case "blocked":
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

// clear begins a screen anew, if there is one.
func (o *operator) clear(title string) {
	if o.clears && !o.json() {
		fmt.Fprintf(o.out, "\033[H\033[2J%s\n", title)
	}
}

// pause waits for the next table, and reports false if it is to end.
func (o *operator) pause(ctx context.Context) bool {
	timer := time.NewTimer(o.every)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
