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

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/nearest"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/replay"
	"github.com/rategen/rategen/internal/rulelist"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// A planCommand replays records by their rules and by others.
type planCommand struct {
	session
	changes
	html, most string
}

func (c *planCommand) about() about {
	return about{
		name: "plan", args: "RECORD...", short: "replay records under changed rules, and list the callers refused", needs: prints | mayRules | replays, min: 1, max: -1,
		long: "Reads what package raterecord has recorded, files or directories of them, and decides each call by the rules in force then, and by changed ones: those of a listing of changed source with -rules, then of a file of overrides with -changed, then of the other flags. It takes 2 GiB of memory at most. With -max-newly-refused the exit code is 1 if more calls are refused that went on before.",
		flags: append(c.changes.flags(),
			text(&c.html, "html", "write a page with charts to this `file`"),
			text(&c.most, "max-newly-refused", "fail if more than this `share` of the calls, such as 0.1%, is newly refused")),
	}
}

func (c *planCommand) run(ctx context.Context, args []string) error {
	most, err := shareOf(c.most)
	if err != nil {
		return err
	}
	records, done, err := openRecords(args)
	defer done()
	if err != nil {
		return err
	}
	change, err := c.change(ctx, &c.session, records)
	if err != nil {
		return err
	}
	result, err := records.Run(change.Change)
	if err != nil {
		return usagef("%v", err)
	}
	change.Tell(result)
	if c.html != "" {
		if err := writePage(c.html, result); err != nil {
			return foreign{err}
		}
	}
	if err := c.print(result); err != nil {
		return err
	}
	if share := replay.Ratio(result.NewlyRefused, result.Calls); c.most != "" && share > most {
		return foreign{fmt.Errorf("%d of %d calls, %s, are newly refused: more than %s", result.NewlyRefused, result.Calls, percent(share), c.most)}
	}
	return nil
}

func (c *planCommand) print(r *replay.Result) error {
	if c.json() {
		return c.printJSON(r)
	}
	c.printf("%d calls from %s to %s, %s of them decided as recorded", r.Calls, r.From.Format(time.RFC3339), r.To.Format(time.RFC3339),
		percent(replay.Ratio(r.Equal, r.Equal+r.Unequal)))
	c.printf("%d are newly refused, %s; %d newly admitted", r.NewlyRefused, percent(replay.Ratio(r.NewlyRefused, r.Calls)), r.NewlyAdmitted)
	var rows, sides [][]string
	n := func(n int64) string { return strconv.FormatInt(n, 10) }
	for _, of := range r.Rules {
		for i, counts := range []replay.Counts{of.Before, of.After} {
			limit, hit := of.Was, of.HitWas
			if i == 1 {
				limit, hit = of.Now, of.HitNow
				if of.About {
					limit += " (about)"
				}
			}
			rows = append(rows, []string{of.Name, limit, n(counts.Admitted), n(counts.Refused), n(counts.ShadowRefused), n(counts.Others), n(counts.Delayed),
				operate.ShortDuration(counts.Longest), fmt.Sprintf("%d of %d", hit, of.Callers)})
		}
		for _, s := range of.Sides[:min(5, len(of.Sides))] {
			first := "-"
			if !s.First.IsZero() {
				first = s.First.Format(time.RFC3339)
			}
			sides = append(sides, []string{of.Name, s.Caller, n(s.Calls), n(s.Was), n(s.Now), first})
		}
	}
	err := c.printTable("RULE LIMIT ADMITTED REFUSED SHADOW-REFUSED OTHERS DELAYED LONGEST CALLERS", rows)
	if err == nil && len(sides) > 0 {
		fmt.Fprintln(c.out)
		err = c.printTable("RULE CALLER CALLS BEFORE AFTER SINCE", sides)
	}
	for _, note := range r.Notes {
		c.printf("note: %s", note)
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

// Changes are what flags say of rules.
type changes struct {
	changed                              string
	max, window, burst, algorithm, modes []string
}

func (c *changes) flags() []cli.Flag {
	list := func(to *[]string, name, usage string) cli.Flag {
		return &cli.StringSliceFlag{Name: name, Usage: usage, Destination: to, Local: true}
	}
	return []cli.Flag{
		text(&c.changed, "changed", "`file` of overrides that is to be in force"),
		list(&c.max, "max", "`RULE=N`: another max"), list(&c.window, "window", "`RULE=D`: another window"),
		list(&c.burst, "burst", "`RULE=N`: another burst"), list(&c.algorithm, "algorithm", "`RULE=NAME`: another algorithm"),
		list(&c.modes, "mode", "`RULE=MODE`: enforce, shadow or soft"),
	}
}

// change returns what the flags say of the rules in some records.
func (c *changes) change(ctx context.Context, s *session, records *replay.Records) (*replay.Plan, error) {
	names := records.Rules()
	r := replay.NewPlan()
	if s.rules != "" {
		r.Listing = map[string]replay.Listed{}
		for _, d := range s.Rules {
			now := *d.Rule
			if d.Shadow {
				now.Mode = runtime.ModeShadow
			}
			r.Listing[d.Name] = replay.Listed{Rule: &now, ByCall: d.ByCall != ""}
		}
	}
	if c.changed != "" {
		var err error
		if r.Overrides, err = override.File(c.changed).Overrides(ctx); err != nil {
			return nil, usagef("%v", operate.InFull(err))
		}
	}
	number := func(to func(*runtime.Rule) *int64, max bool) func(string) (func(*runtime.Rule) bool, error) {
		return func(text string) (func(*runtime.Rule) bool, error) {
			n, err := strconv.ParseInt(text, 10, 64)
			return func(r *runtime.Rule) bool { *to(r) = n; return max }, err
		}
	}
	for _, f := range []struct {
		name  string
		given []string
		parse func(string) (func(*runtime.Rule) bool, error)
	}{
		{"max", c.max, number(func(r *runtime.Rule) *int64 { return &r.Max }, true)},
		{"burst", c.burst, number(func(r *runtime.Rule) *int64 { return &r.Burst }, false)},
		{"window", c.window, func(text string) (func(*runtime.Rule) bool, error) {
			d, err := time.ParseDuration(text)
			return func(r *runtime.Rule) bool { r.Window = d; return false }, err
		}},
		{"algorithm", c.algorithm, func(text string) (func(*runtime.Rule) bool, error) {
			var a runtime.Algorithm
			err := rulelist.Named(text, &a)
			return func(r *runtime.Rule) bool {
				replay.CountBy(r, a)
				return false
			}, err
		}},
		{"mode", c.modes, func(text string) (func(*runtime.Rule) bool, error) {
			var m runtime.Mode
			err := rulelist.Named(text, &m)
			return func(r *runtime.Rule) bool { r.Mode = m; return false }, err
		}},
	} {
		for _, given := range f.given {
			at := strings.LastIndex(given, "=")
			if at < 1 {
				return nil, usagef("-%s %q: write RULE=VALUE", f.name, given)
			}
			set, err := f.parse(given[at+1:])
			if err != nil || given[at+1:] == "" {
				return nil, usagef("-%s %q: %v", f.name, given, cmp.Or(err, errors.New("there is no value")))
			}
			if name := given[:at]; !slices.Contains(names, name) {
				return nil, usagef("-%s %q: the records have no call of %q%s", f.name, given, name, nearest.Hint(name, names))
			}
			r.Sets[given[:at]] = append(r.Sets[given[:at]], set)
		}
	}
	return r, nil
}

// shareOf reads a share, such as 0.1%; the empty text is none.
func shareOf(text string) (float64, error) {
	number, isPercent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if isPercent {
		share /= 100
	}
	if text != "" && (err != nil || !(share >= 0 && share <= 1)) {
		return 0, usagef("%q is no share: write 0.1%%, or 0.001", text)
	}
	return share, nil
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
