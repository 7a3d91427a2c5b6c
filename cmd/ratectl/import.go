package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// An importCommand puts what export has printed into Redis.
type importCommand struct {
	session
	overwrite, yes, dry, skip bool
	why                       string
	renames                   []string
}

func (c *importCommand) about() about {
	return about{
		name: "import", args: "FILE|-", short: "put exported counts into Redis", needs: judgesKeys, min: 1, max: 1,
		long: "Puts what export has printed into this Redis, in this namespace. Each key expires when it would have. Keys that are there already stay as they are, unless -overwrite. Import before programs count in the new Redis, then restart them: what they hold of leases and refusals is of the old one. " +
			"Overrides that are there already stay as well, and so does a history. Nothing is imported if a line is no line of an export, or not of a rule that counts alike, unless -skip; the error names the lines. A rule that is called otherwise here is named by -rename. Counts that the scripts do not understand are left out and named. Asks for confirmation.",
		flags: []cli.Flag{yesNo(&c.overwrite, "overwrite", "replace counts that are there, though they may be newer"), yesNo(&c.skip, "skip", "leave out the lines that do not fit, and name them"), &cli.StringSliceFlag{Name: "rename", Usage: "`OLD=NEW`: what the file says of one rule is of another", Destination: &c.renames, Local: true}, yesFlag(&c.yes), dryFlag(&c.dry), whyFlag(&c.why)},
	}
}

// renamed returns rules by the names that they have in the file.
func (c *importCommand) renamed() (map[string]declared, error) {
	rules := make(map[string]declared)
	for _, text := range c.renames {
		old, name, ok := strings.Cut(text, "=")
		if !ok || old == "" {
			return nil, usagef("-rename %s: write OLD=NEW", text)
		}
		if _, twice := rules[old]; twice {
			return nil, usagef("-rename %s: %s is renamed twice", text, old)
		}
		d, err := c.rule(name)
		if err != nil {
			return nil, err
		}
		rules[old] = d
	}
	return rules, nil
}

func (c *importCommand) run(ctx context.Context, args []string) error {
	file, done, err := c.countsFile(args[0])
	if err != nil {
		return err
	}
	defer done()
	renamed, err := c.renamed()
	if err != nil {
		return err
	}
	i := &importing{importCommand: c, renamed: renamed, named: map[string]bool{}, left: map[int]bool{}, seen: map[string]int{}, results: map[string]*importLine{}, backup: override.Backup{Fields: map[string]string{}}}
	keys, err := i.examine(file)
	if err != nil {
		return usagef("%s: %v; nothing is imported", args[0], err)
	}
	c.warnOfClocks(ctx)
	n := len(i.backup.Fields) + len(i.backup.History)
	if n > 0 && c.overrides == "" && !c.skip {
		return usagef("%s: it has overrides and their history: name the hash with -overrides, or leave them out by -skip; nothing is imported", args[0])
	}
	if !c.dry {
		how := "keep those that are there"
		if c.overwrite {
			how = "overwrite those that are there, with all that was counted since"
		}
		if err := c.confirm(ctx, c.yes, "import the counts of %d keys of %d rules and %d overrides in %s, and %s", keys, len(i.results), len(i.backup.Fields), namespaces(c.namespace), how); err != nil {
			return err
		}
	}
	var lines []importLine
	if n > 0 && c.overrides != "" {
		if lines, err = i.restore(ctx); err != nil {
			return err
		}
	}
	if !c.dry {
		did := "import"
		if c.overwrite {
			did += " -overwrite"
		}
		did = fmt.Sprintf("%s of %d keys of %s", did, keys, strings.Join(slices.Sorted(maps.Keys(i.results)), ", "))
		if err := c.note(ctx, override.Target{Rule: override.All}, did[:min(len(did), 500)], "", c.why); err != nil {
			return err
		}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	err = i.all(ctx, file)
	for _, d := range c.known {
		if l := i.results[c.reference(d)]; l != nil {
			lines = append(lines, *l)
		}
	}
	if err = cmp.Or(err, printEach(&c.printer, "RULE IMPORTED KEPT LAPSED BAD", lines, importLine.row)); err == nil && i.bad > 0 {
		err = fmt.Errorf("%d keys are not imported: their counts are none of their rules'", i.bad)
	}
	if err == nil && len(i.left) > 0 {
		err = fmt.Errorf("%d lines are left out, which do not fit", len(i.left))
	}
	return err
}

// restore imports the overrides and their history.
func (i *importing) restore(ctx context.Context) ([]importLine, error) {
	editor, err := i.editor()
	if err != nil {
		return nil, err
	}
	fields, records, err := editor.Restore(ctx, i.backup, i.overwrite, override.Edit{Who: i.author(), Why: strings.TrimSuffix("import: "+i.why, ": "), Try: i.dry})
	return []importLine{
		{Rule: "(overrides)", Imported: fields, Kept: len(i.backup.Fields) - fields, DryRun: i.dry},
		{Rule: "(history)", Imported: records, Kept: len(i.backup.History) - records, DryRun: i.dry},
	}, err
}

// all imports all lines, some at a time.
func (i *importing) all(ctx context.Context, file io.Reader) error {
	var some []*countsLine
	bytes := 0
	_, err := readCounts(file, func(l *countsLine) error {
		if l.Override != nil || l.Change != "" || i.left[l.number] {
			return nil
		}
		if err := i.place(l); err != nil {
			return fmt.Errorf("line %d: the file has changed: %w", l.number, err)
		}
		if some, bytes = append(some, l), bytes+len(l.String)+50*len(l.Sorted); len(some) < peeks && bytes < atOnce {
			return nil
		}
		err := i.put(ctx, some)
		some, bytes = nil, 0
		return err
	})
	if err == nil {
		err = i.put(ctx, some)
	}
	return err
}

// put imports some keys. Each is tried first under a key that nobody uses: what the scripts
// do not understand would let its caller pass.
func (i *importing) put(ctx context.Context, some []*countsLine) error {
	for _, l := range some {
		l.tried = runtime.NewKey().AddString("ratectl import " + strconv.FormatUint(rand.Uint64(), 36))
	}
	if err := i.write(ctx, some, true); err != nil {
		return err
	}
	errs := together(len(some), func(j int) error {
		_, err := i.state(ctx, some[j].of, some[j].tried)
		return err
	})
	if _, err := i.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, l := range some {
			pipe.Unlink(ctx, l.to)
		}
		return nil
	}); err != nil {
		return err
	}
	var good []*countsLine
	for j, l := range some {
		switch {
		case errs[j] == nil:
			good = append(good, l)
		case runtime.ClassOf(errs[j]) == runtime.ClassWrongType:
			l.outcome = "bad"
			if i.bad++; i.bad <= maxBad {
				i.logger().Printf("line %d: %s", l.number, visible(l.text()+" is no count of its rule"))
			}
		default:
			return errs[j]
		}
	}
	if err := i.write(ctx, good, false); err != nil {
		return err
	}
	for _, l := range some {
		r := i.results[l.Rule]
		*map[string]*int{"imported": &r.Imported, "kept": &r.Kept, "lapsed": &r.Lapsed, "bad": &r.Bad}[l.outcome]++
	}
	return nil
}

// write writes the counts of some lines, or tries them under other keys. With -n it finds out
// what a write would do.
func (i *importing) write(ctx context.Context, some []*countsLine, try bool) error {
	how := "keep"
	if i.overwrite || try {
		how = "overwrite"
	}
	replies, rest := make([]*redis.Cmd, len(some)), make([][][]any, len(some))
	_, err := i.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for j, l := range some {
			l.to = l.redisKey
			pages := l.writes(how, l.ends)
			switch {
			case try:
				l.to, pages = i.limiter.RedisKey(i.limitOf(l.of, l.tried)), l.writes(how, time.Now().Add(time.Minute))
			case i.dry:
				pages = [][]any{{how, l.ends.UnixMilli(), "nothing"}}
			}
			replies[j], rest[j] = pipe.Eval(ctx, writeKey, []string{l.to}, pages[0]...), pages[1:]
		}
		return nil
	})
	if err != nil {
		return err
	}
	for j, l := range some {
		l.outcome, _ = replies[j].Text()
		for _, page := range rest[j] { // one at a time: they are large
			if l.outcome != "imported" {
				break
			}
			if err := i.client.Eval(ctx, writeKey, []string{l.to}, page...).Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
