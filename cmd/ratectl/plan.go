package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/nearest"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/replay"
	"github.com/rategen/rategen/internal/rulelist"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

func (s *session) plan(ctx context.Context, args []string) error {
	most, err := shareOf(s.newlyRefused)
	if err != nil {
		return err
	}
	records, done, err := openRecords(args)
	defer done()
	if err != nil {
		return err
	}
	change, err := s.change(ctx, records)
	if err != nil {
		return err
	}
	result, err := records.Run(change.Change)
	if err != nil {
		return usagef("%v", err)
	}
	change.Tell(result)
	if s.html != "" {
		if err := writePage(s.html, result); err != nil {
			return foreign{err}
		}
	}
	if err := s.printPlan(result); err != nil {
		return err
	}
	if share := replay.Ratio(result.NewlyRefused, result.Calls); s.newlyRefused != "" && share > most {
		return foreign{fmt.Errorf("%d of %d calls, %s, are newly refused: more than %s", result.NewlyRefused, result.Calls, percent(share), s.newlyRefused)}
	}
	return nil
}

func (s *session) printPlan(r *replay.Result) error {
	if s.json() {
		return s.printJSON(r)
	}
	s.printf("%d calls from %s to %s, %s of them decided as recorded", r.Calls, r.From.Format(time.RFC3339), r.To.Format(time.RFC3339),
		percent(replay.Ratio(r.Equal, r.Equal+r.Unequal)))
	s.printf("%d are newly refused, %s; %d newly admitted", r.NewlyRefused, percent(replay.Ratio(r.NewlyRefused, r.Calls)), r.NewlyAdmitted)
	var rows, sides [][]string
	for _, of := range r.Rules {
		for i, counts := range []replay.Counts{of.Before, of.After} {
			limit, hit := of.Was, of.HitWas
			if i == 1 {
				limit, hit = of.Now, of.HitNow
				if of.About {
					limit += " (about)"
				}
			}
			rows = append(rows, rowOf(of.Name, limit, counts.Admitted, counts.Refused, counts.ShadowRefused, counts.Others, counts.Delayed,
				operate.ShortDuration(counts.Longest), fmt.Sprintf("%d of %d", hit, of.Callers)))
		}
		for _, side := range of.Sides[:min(5, len(of.Sides))] {
			first := "-"
			if !side.First.IsZero() {
				first = side.First.Format(time.RFC3339)
			}
			sides = append(sides, rowOf(of.Name, side.Caller, side.Calls, side.Was, side.Now, first))
		}
	}
	err := s.printTable("RULE LIMIT ADMITTED REFUSED SHADOW-REFUSED OTHERS DELAYED LONGEST CALLERS", rows)
	if err == nil && len(sides) > 0 {
		fmt.Fprintln(s.out)
		err = s.printTable("RULE CALLER CALLS BEFORE AFTER SINCE", sides)
	}
	for _, note := range r.Notes {
		s.printf("note: %s", note)
	}
	return err
}

// openRecords opens files, and the records in directories. Done closes them, also after an error.
func openRecords(paths []string) (records *replay.Records, done func(), err error) {
	var open []*os.File
	done = func() {
		for _, f := range open {
			_ = f.Close()
		}
	}
	var files []io.ReaderAt
	for _, path := range paths {
		names := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if names, _ = filepath.Glob(filepath.Join(path, "*.ratelog")); len(names) == 0 {
				return nil, done, usagef("%s: no file there ends in .ratelog", path)
			}
		}
		for _, name := range names {
			f, err := os.Open(name)
			if err != nil {
				return nil, done, usagef("%v", err)
			}
			open, files = append(open, f), append(files, f)
		}
	}
	if records, err = replay.Open(files...); err != nil {
		err = usagef("%v", err)
	}
	return records, done, err
}

// replacing are the flags that change a rule, with what each does for a text.
var replacing = []struct {
	name string
	set  func(r *runtime.Rule, text string) error
}{
	{"max", func(r *runtime.Rule, text string) (err error) {
		r.Max, err = strconv.ParseInt(text, 10, 64)
		return err
	}},
	{"burst", func(r *runtime.Rule, text string) (err error) {
		r.Burst, err = strconv.ParseInt(text, 10, 64)
		return err
	}},
	{"window", func(r *runtime.Rule, text string) (err error) { r.Window, err = time.ParseDuration(text); return err }},
	{"algorithm", func(r *runtime.Rule, text string) error {
		var a runtime.Algorithm
		err := rulelist.Named(text, &a)
		replay.CountBy(r, a)
		return err
	}},
	{"mode", func(r *runtime.Rule, text string) error { return rulelist.Named(text, &r.Mode) }},
}

func (s *session) change(ctx context.Context, records *replay.Records) (*replay.Plan, error) {
	names := records.Rules()
	p := replay.NewPlan()
	if s.rules != "" {
		p.Listing = map[string]replay.Listed{}
		for _, d := range s.Rules {
			now := *d.Rule
			if d.Shadow {
				now.Mode = runtime.ModeShadow
			}
			p.Listing[d.Name] = replay.Listed{Rule: &now, ByCall: d.ByCall != ""}
		}
	}
	if s.changed != "" {
		var err error
		if p.Overrides, err = override.File(s.changed).Overrides(ctx); err != nil {
			return nil, usagef("%v", operate.InFull(err))
		}
	}
	for _, f := range replacing {
		for _, given := range s.flags.StringSlice(f.name) {
			at := strings.LastIndex(given, "=")
			if at < 1 {
				return nil, usagef("-%s %q: write RULE=VALUE", f.name, given)
			}
			name, text := given[:at], given[at+1:]
			if err := f.set(new(runtime.Rule), text); err != nil || text == "" {
				return nil, usagef("-%s %q: %v", f.name, given, cmp.Or(err, errors.New("there is no value")))
			}
			if !slices.Contains(names, name) {
				return nil, usagef("-%s %q: the records have no call of %q%s", f.name, given, name, nearest.Hint(name, names))
			}
			p.Sets[name] = append(p.Sets[name], func(r *runtime.Rule) { _ = f.set(r, text) })
			p.Max[name] = p.Max[name] || f.name == "max"
		}
	}
	return p, nil
}

// shareOf reads a share, such as 0.1%; the empty text is none.
func shareOf(text string) (float64, error) {
	share, err := fraction(text)
	if text != "" && (err != nil || !(share >= 0 && share <= 1)) {
		return 0, usagef("%q is no share: write 0.1%%, or 0.001", text)
	}
	return share, nil
}

// fraction reads a number, or one of percent.
func fraction(text string) (float64, error) {
	number, isPercent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(number, 64)
	if isPercent {
		n /= 100
	}
	return n, err
}

// percent writes a share, and never one as nothing that is something.
func percent(share float64) string {
	if share > 0 && share < 0.0001 {
		return "<0.01%"
	}
	if share < 1 && share > 0.9999 {
		return ">99.99%"
	}
	return strconv.FormatFloat(100*share, 'g', 3, 64) + "%"
}
