package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/runtime"
)

// top prints the rules again and again, those that refuse most first. On a terminal they can be sorted, filtered and
// opened. An interrupt is how it ends.
func (s *session) top(ctx context.Context, _ []string) error {
	if s.every < 100*time.Millisecond {
		return usagef("-every is at least 100ms")
	}
	if s.by != "" && (s.by != "calls" || s.page != "" && s.given("page")) {
		return usagef("-by %q: there is -by calls, without -page", s.by)
	}
	if s.count == 0 && !s.clears {
		s.count = 1
	}
	if s.terminal != nil && s.count == 0 && !s.json() {
		restore, err := s.terminal.raw()
		if err != nil {
			return foreign{fmt.Errorf("keys of the terminal cannot be read, -count prints tables without them: %w", err)}
		}
		defer restore()
		var quit context.CancelFunc
		ctx, quit = context.WithCancel(ctx)
		defer quit()
		fmt.Fprint(s.out, "\x1b[?1049h\x1b[?25l") // another screen, without a cursor
		defer fmt.Fprint(s.out, "\x1b[?25h\x1b[?1049l")
		s.shows = false
		s.screen = newScreen(s.out, s.terminal.size, quit)
		go s.screen.listen(s.in)
	}
	show := s.ofRedis
	if s.page != "" && s.by == "" {
		show = s.ofPage
	}
	err := show(ctx)
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// ofRedis prints what is counted in Redis. After a first table, what fails is tried again.
func (s *session) ofRedis(ctx context.Context) error {
	for n := 1; ; n++ {
		var err, doubt error
		if n > 1 && s.by == "" {
			err = s.Renew(ctx)
		}
		if s.by != "" {
			err = s.hotKeys(ctx)
		} else if rule := s.screen.rule(); err == nil && rule != "" {
			err = s.opened(ctx, rule)
		} else if err == nil {
			var lines []topLine
			if lines, err = s.callers(ctx); err == nil {
				err = repeated(s, "callers in Redis", "RULE BLOCKED REFUSED NEAR UNKNOWN KEYS WORST", lines, topLine.row)
			}
			if err == nil && n == s.count {
				err = s.Doubt(ctx)
			} else if err == nil && s.count == 0 {
				doubt = s.Writable(ctx)
			}
		}
		_, untold := errors.AsType[operate.Failure](err) // of keys: it may be told soon
		if err != nil && (n == 1 && !untold || ctx.Err() != nil || n == s.count) {
			return err
		}
		if err = cmp.Or(err, doubt); err != nil {
			s.reportRetry(s.explained(err))
		}
		if n == s.count || !s.pause(ctx) {
			return nil
		}
	}
}

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
func (s *session) topLine(d operate.Rule) topLine {
	differs, _ := s.Differing(d.Name)
	return topLine{Rule: d.Reference, Worst: "-", Differs: differs.Limits()}
}

func (s *session) callers(ctx context.Context) ([]topLine, error) {
	index := make(map[*runtime.Rule]*topLine)
	lines := make([]topLine, len(s.Rules))
	if s.screen == nil {
		s.Compare(ctx)
		s.sayDiffering(s.Names()...)
	} else { // which has room for rules alone
		processes, _ := s.Processes(ctx)
		s.CompareIn(processes)
	}
	for i, d := range s.Rules {
		lines[i] = s.topLine(d)
		index[d.Rule] = &lines[i]
	}
	err := s.Walk(ctx, s.Rules, func(d operate.Rule, k operate.State) {
		l := index[d.Rule]
		l.Keys++
		switch k.State {
		case operate.Blocked, operate.Held:
			l.Blocked++
		case operate.Refused:
			l.Refused++
		case operate.Near:
			l.Near++
		case operate.Unknown:
			l.Unknown++
		}
		if l.Keys == 1 || operate.Worse(k, l.worst) < 0 {
			l.worst, l.Worst = k, k.Key
		}
	})
	slices.SortStableFunc(lines, func(a, b topLine) int {
		return cmp.Or(b.Blocked+b.Refused-a.Blocked-a.Refused, b.Near-a.Near, strings.Compare(a.Rule, b.Rule))
	})
	return lines, err
}

// opened prints the keys of a rule that somebody has opened, by what was shown of it.
func (s *session) opened(ctx context.Context, shown string) error {
	i := slices.IndexFunc(s.Rules, func(d operate.Rule) bool { return printed.Text(s.topLine(d).label()) == shown })
	if i < 0 { // processes have another form of it by now
		return nothingf("rule %s is not as it was: esc goes back", shown)
	}
	found, err := s.Keys(ctx, s.Rules[i], operate.States, 1000)
	if err != nil {
		return err
	}
	return repeated(s, fmt.Sprintf("%d of %d keys of %s", len(found.Top), found.Matched, shown), keyHead, found.Top, stateRow)
}

func (s *session) hotKeys(ctx context.Context) error {
	processes, err := s.Processes(ctx)
	if err != nil {
		return err
	}
	calls := operate.CallsOf(processes)
	if calls.Processes == 0 {
		return nothingf("which keys Redis is asked about is not known yet in %s: none of %d processes there has told its calls; each with rules does ten seconds after its start and then every five, unless it has WithoutReports: ask again by then",
			operate.Namespaces(s.Namespace), len(processes))
	}
	if len(calls.Keys) == 0 {
		return nothingf("no key is told by the %d processes that tell their calls in %s, the last one at %s, %.0f of which a second went to Redis: they do so every five seconds, and the first time ten seconds after their start, but never with WithRefusals(0, nil)",
			calls.Processes, operate.Namespaces(s.Namespace), calls.Told.UTC().Format(time.RFC3339), calls.Asked)
	}
	for i, k := range calls.Keys {
		if n := slices.IndexFunc(s.Rules, func(d operate.Rule) bool { return d.Name == k.Rule }); n >= 0 {
			calls.Keys[i].Remedy = operate.Remedy(s.Rules[n].Rule)
		}
	}
	return repeated(s, fmt.Sprintf("%.0f calls a second that Redis decides, told by %d processes", calls.Asked, calls.Processes), "RULE KEY CALLS/S SHARE PROCESSES REMEDY", calls.Keys, func(k operate.HotKey) []string {
		return rowOf(k.Rule, k.Key, fmt.Sprintf("%.0f", k.PerSecond), fmt.Sprintf("%.0f%%", 100*k.Share), k.Processes, cmp.Or(k.Remedy, "-"))
	})
}
