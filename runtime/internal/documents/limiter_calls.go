package documents

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// take takes limits, and keeps the decision in a call, or if that is nil in one of the name that the text has.
func (p *program) take(ctx context.Context, l *process, c *call, text string) (answer string) {
	defer func() {
		if reason := recover(); reason != nil {
			answer = fmt.Sprint("panics with ", reason)
		}
	}()
	text, show, _ := strings.Cut(text, " show ")
	text, name, _ := strings.Cut(text, " as ")
	d, err := l.Take(ctx, p.limits(text)...)
	if c == nil {
		c = &call{ctx: ctx}
		p.calls[name] = c
	}
	c.decision = d
	return Told(d, err, strings.Fields(show)...)
}

// flow takes limits again and again, and counts who decided.
func (p *program) flow(ctx context.Context, l *process, words []string) string {
	count := map[string]int{}
	for range p.number(words[0]) {
		d, err := l.Take(ctx, p.limits(strings.Join(words[2:], " "))...)
		text := "by " + d.Source.String()
		if err != nil {
			text = strings.TrimSpace(Words(err))
		}
		count[text]++
		time.Sleep(p.duration(words[1]))
	}
	var all []string
	for _, text := range slices.Sorted(maps.Keys(count)) {
		all = append(all, fmt.Sprint(count[text], " ", text))
	}
	return strings.Join(all, ", ")
}

// begin begins a call that may wait.
func (p *program) begin(l *process, text string) string {
	name, step, _ := strings.Cut(text, ": ")
	ctx, step, done := p.context(l, step)
	c := &call{answer: make(chan string, 1), began: time.Now()}
	c.ctx, c.cancel = context.WithCancel(ctx)
	p.calls[name] = c
	go func() {
		defer done()
		var answer string
		if charge, is := strings.CutPrefix(step, "charge "); is {
			words := strings.Fields(charge)
			answer = Words(p.meters[words[0]].Charge(p.numbers(words[1:])...))
		} else {
			answer = p.take(c.ctx, l, c, strings.TrimPrefix(step, "take "))
		}
		c.answer <- answer + func() string {
			if took := time.Since(c.began); took > 0 {
				return fmt.Sprint(" after ", took)
			}
			return ""
		}()
	}()
	synctest.Wait()
	select {
	case answer := <-c.answer:
		return answer
	default:
		return "waits"
	}
}

// look looks at limits, or takes each by itself.
func (p *program) look(ctx context.Context, l *process, verb, text string) string {
	text, show, _ := strings.Cut(text, " show ")
	text, name, named := strings.Cut(text, " as ")
	limits := p.limits(text)
	var all []string
	switch verb {
	case "peek":
		d, err := l.Peek(ctx, limits...)
		if err == nil && !d.Allowed {
			return Told(d, &runtime.LimitedError{Rule: d.Rule, RetryAfter: d.RetryAfter}, strings.Fields(show)...)
		}
		return Told(d, err, strings.Fields(show)...)
	case "each":
		for i, o := range l.TakeEach(ctx, limits...) {
			if named {
				p.calls[name+strconv.Itoa(i)] = &call{ctx: ctx, decision: o.Decision}
			}
			all = append(all, Told(o.Decision, o.Err, strings.Fields(show)...))
		}
	case "usage":
		usages, err := l.Usage(ctx, limits...)
		if err != nil {
			return Words(err)
		}
		for _, u := range usages {
			text := fmt.Sprintf("%s %d of %d left", u.Rule, u.Remaining, u.Limit)
			if u.Blocked {
				text += " blocked"
			} else if u.RetryAfter == runtime.Never {
				text += " for ever"
			}
			if u.Mode != 0 {
				text += " " + u.Mode.String()
			}
			for _, past := range u.Past {
				text += fmt.Sprintf(", %d since %s", past.Used, past.Start.Format(time.DateOnly))
			}
			all = append(all, text)
		}
	}
	return cmp.Or(strings.Join(all, ", "), "nothing")
}

func (p *program) settle(ctx context.Context, l *process, verb string, words []string) string {
	d := p.call(words[0]).decision
	switch verb {
	case "refund":
		return Words(l.Refund(ctx, d))
	case "later":
		l.SettleLater(ctx, d, p.numbers(words[1:])...)
		return ""
	}
	return Words(l.Settle(ctx, d, p.numbers(words[1:])...))
}
