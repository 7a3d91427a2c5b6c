package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/runtime/rule"
)

// because says what a key is kept out by, other than its count, and what ends that.
func because(s operate.State) string {
	if s.State == operate.Blocked && s.RetryMS == nil {
		return ", by an override: ratectl unblock or undo ends that"
	}
	return map[string]string{
		operate.Broken:  ", since another program has written this key: ratectl reset removes it",
		operate.Held:    ", since the peer of these calls has asked for it: ratectl release ends that",
		operate.Blocked: ", by the rule itself: ratectl reset ends that",
		operate.Unknown: ": each call brings its max",
	}[s.State]
}

func stateRow(s operate.State) []string {
	state := s.State
	if s.Shadow && s.State != operate.Off {
		state += " (shadow)"
	}
	if s.Window == "" { // it is not what the rule writes, or Redis did not say
		return []string{s.Key, state, "-", "-", "-"}
	}
	used := usedOf(s)
	if s.Limit != nil && used != "-" {
		used = fmt.Sprintf("%d/%d", s.Used, *s.Limit)
	} else if s.State == operate.Off {
		used = "-"
	}
	if s.Differs != "" {
		used += " of " + s.Differs
	}
	return []string{s.Key, state, used, retryOf(s), operate.ShortDuration(time.Duration(s.ResetMS) * time.Millisecond)}
}

// usedOf returns what is used, if that is known: while a key is held nothing is left of it.
func usedOf(s operate.State) string {
	if s.State == operate.Held || s.State == operate.Broken {
		return "-"
	}
	return fmt.Sprint(s.Used)
}

func retryOf(s operate.State) string {
	if s.RetryMS == nil {
		return "never"
	}
	if *s.RetryMS == 0 && !s.Refuses() && s.State != operate.Broken {
		return "-"
	}
	if s.Permits && s.State == operate.Refused {
		return "when a call ends"
	}
	return operate.ShortDuration(time.Duration(*s.RetryMS) * time.Millisecond)
}

func (s *session) listKeys(ctx context.Context, args []string) error {
	d, err := s.Rule(args[0])
	if err != nil {
		return err
	}
	wanted, err := wantedStates(s.states)
	if err != nil {
		return err
	}
	if d.ByCall != "" && s.Max == 0 && s.states != "" {
		return usagef("calls of rule %s bring a max of their own, %s: say with -max which one to judge by", d.Name, d.ByCall)
	}
	s.Compare(ctx)
	keys, err := s.Keys(ctx, d, wanted, s.limit)
	if err != nil {
		return err
	}
	if keys.Total == 0 {
		return s.NoKeys(ctx, d)
	}
	s.sayDiffering(d.Name)
	lines := make([]keyLine, len(keys.Top))
	for i, k := range keys.Top {
		lines[i].State = k
		if key, err := rule.ParseKey(k.Key); err == nil && d.Headroom != 0 {
			if lines[i].Divided, err = operate.SharesOf(ctx, s.Limiter, d.Rule, key); err != nil {
				return err
			}
		}
	}
	if err := printKeys(&s.printer, lines); err != nil {
		return err
	}
	if len(keys.Top) < keys.Matched {
		s.logger().Printf("these are the first %d of %d keys, see -limit and -state", len(keys.Top), keys.Matched)
	}
	return nil
}

// A keyLine is a key, and the shares of it that have used most of late, if its rule is divided.
type keyLine struct {
	operate.State
	operate.Divided
}

// printKeys prints keys, and a row for each of their shares below them.
func printKeys(p *printer, lines []keyLine) error {
	if !slices.ContainsFunc(lines, func(l keyLine) bool { return l.SharesTotal > 0 }) || p.json() {
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

func foundRow(f *operate.FoundKey) []string {
	says := make([]string, len(f.Overrides))
	for i, e := range f.Overrides {
		says[i] = e.String()
	}
	refused := "-"
	if r := f.Refused; r != nil {
		refused = fmt.Sprintf("%s, last %v", timesOf(r), r.Last())
	}
	return append(append([]string{f.Rule}, stateRow(f.State)...), refused, cmp.Or(strings.Join(says, "; "), "-"))
}

func (s *session) find(ctx context.Context, args []string) error {
	if args[0] == "" {
		return usagef("find what? Name a caller, as in ratectl find acme")
	}
	entries, err := s.Deciding(ctx)
	if err != nil {
		return err
	}
	if err := s.readSecret(); err != nil {
		return err
	}
	s.Compare(ctx)
	found, failed := s.Find(ctx, args[0], entries, s.limit)
	if failed != nil && len(found.Keys) == 0 {
		return failed
	}
	if found.Unread != nil { // what holds now is known without
		s.logger().Printf("when callers were refused is not known: %v", s.explained(found.Unread))
	}
	if found.All == 0 && len(found.Overrides) == 0 {
		return nothingf("nothing is counted for a key with %q in %s, and no override is for one; a caller for whom nothing is counted is refused by no rule, unless by a failure policy", args[0], operate.Namespaces(s.Namespace))
	}
	names := make([]string, len(found.Keys))
	for i, k := range found.Keys {
		names[i] = k.Rule
	}
	s.sayDiffering(names...)
	if err := printEach(&s.printer, "RULE "+keyHead+" REFUSED OVERRIDES", found.Keys, foundRow); err != nil {
		return err
	}
	if found.All > found.Judged {
		s.logger().Printf("of %d keys %d were judged, those first that were refused in the last day: name more of the caller", found.All, found.Judged)
	}
	if found.All > len(found.Keys) {
		s.logger().Printf("these are the worst %d of %d keys, see -limit", len(found.Keys), found.All)
	}
	for _, e := range found.Overrides[:min(len(found.Overrides), 10)] {
		e.Last = nil
		s.logger().Printf("an override that decides for none of these keys: %s, of rule %s", visible(e.String()), printed.Text(e.Rule))
	}
	return failed
}
