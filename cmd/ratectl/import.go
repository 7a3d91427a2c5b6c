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

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// An importCommand puts what export has printed into Redis.
type importCommand struct {
	changing
	overwrite, skip bool
	renames         []string

	renamed map[string]operate.Rule // rules by their names in the file
	named   map[string]bool         // in the file
	left    map[int]bool            // lines that are left out
	seen    map[string]int          // lines by Redis keys
	backup  override.Backup
	results map[string]*importLine
	bad     int
}

func (c *importCommand) about() about {
	return about{
		name: "import", args: "FILE|-", short: "put exported counts into Redis", needs: judgesKeys, min: 1, max: 1,
		long: "Puts what export has printed into this Redis, in this namespace. Each key expires when it would have. Keys that are there already stay as they are, unless -overwrite. Import before programs count in the new Redis, then restart them: what they hold of leases and refusals is of the old one. " +
			"Overrides that are there already stay as well, and so does a history. Nothing is imported if a line is no line of an export, or not of a rule that counts alike, unless -skip; the error names the lines. A rule that is called otherwise here is named by -rename. Counts that the scripts do not understand are left out and named. Asks for confirmation.",
		flags: append([]cli.Flag{yesNo(&c.overwrite, "overwrite", "replace counts that are there, though they may be newer"), yesNo(&c.skip, "skip", "leave out the lines that do not fit, and name them"), &cli.StringSliceFlag{Name: "rename", Usage: "`OLD=NEW`: what the file says of one rule is of another", Destination: &c.renames, Local: true}, c.yesFlag()}, c.tryFlags()...),
	}
}

// rename finds the rules that are called otherwise in the file.
func (c *importCommand) rename() error {
	for _, text := range c.renames {
		old, name, ok := strings.Cut(text, "=")
		if !ok || old == "" {
			return usagef("-rename %s: write OLD=NEW", text)
		}
		if _, twice := c.renamed[old]; twice {
			return usagef("-rename %s: %s is renamed twice", text, old)
		}
		d, err := c.rule(name)
		if err != nil {
			return err
		}
		c.renamed[old] = d
	}
	return nil
}

func (c *importCommand) run(ctx context.Context, args []string) error {
	file, done, err := c.countsFile(args[0])
	if err != nil {
		return err
	}
	defer done()
	c.renamed, c.named, c.left, c.seen = map[string]operate.Rule{}, map[string]bool{}, map[int]bool{}, map[string]int{}
	c.results, c.backup.Fields = map[string]*importLine{}, map[string]string{}
	if err := c.rename(); err != nil {
		return err
	}
	keys, err := c.examine(file)
	if err != nil {
		return usagef("%s: %v; nothing is imported", args[0], err)
	}
	c.warnOfClocks(ctx)
	n := len(c.backup.Fields) + len(c.backup.History)
	if n > 0 && c.overrides == "" && !c.skip {
		return usagef("%s: it has overrides and their history: name the hash with -overrides, or leave them out by -skip; nothing is imported", args[0])
	}
	did, how := "import", "keep those that are there"
	if c.overwrite {
		did, how = "import -overwrite", "overwrite those that are there, with all that was counted since"
	}
	if !c.dry {
		if err := c.confirm(ctx, "import the counts of %d keys of %d rules and %d overrides in %s, and %s", keys, len(c.results), len(c.backup.Fields), namespaces(c.Namespace), how); err != nil {
			return err
		}
	}
	var lines []importLine
	if n > 0 && c.overrides != "" {
		if lines, err = c.restore(ctx); err != nil {
			return err
		}
	}
	if !c.dry {
		did = fmt.Sprintf("%s of %d keys of %s", did, keys, strings.Join(slices.Sorted(maps.Keys(c.results)), ", "))
		if err := c.note(ctx, override.Target{Rule: override.All}, did[:min(len(did), 500)], ""); err != nil {
			return err
		}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	err = c.all(ctx, file)
	for _, d := range c.Rules {
		if l := c.results[d.Reference]; l != nil {
			lines = append(lines, *l)
		}
	}
	if err = cmp.Or(err, printEach(&c.printer, "RULE IMPORTED KEPT LAPSED BAD", lines, importLine.row)); err == nil && c.bad > 0 {
		err = fmt.Errorf("%d keys are not imported: their counts are none of their rules'", c.bad)
	}
	if err == nil && len(c.left) > 0 {
		err = fmt.Errorf("%d lines are left out, which do not fit", len(c.left))
	}
	return err
}

// restore imports the overrides and their history.
func (c *importCommand) restore(ctx context.Context) ([]importLine, error) {
	editor, err := c.editor()
	if err != nil {
		return nil, err
	}
	fields, records, err := editor.Restore(ctx, c.backup, c.overwrite, override.Edit{Who: c.author(), Why: strings.TrimSuffix("import: "+c.why, ": "), Try: c.dry})
	return []importLine{
		{Rule: "(overrides)", Imported: fields, Kept: len(c.backup.Fields) - fields, DryRun: c.dry},
		{Rule: "(history)", Imported: records, Kept: len(c.backup.History) - records, DryRun: c.dry},
	}, err
}

// all imports all lines, some at a time.
func (c *importCommand) all(ctx context.Context, file io.Reader) error {
	var some []*countsLine
	bytes := 0
	_, err := readCounts(file, func(l *countsLine) error {
		if l.Override != nil || l.Change != "" || c.left[l.number] {
			return nil
		}
		if err := c.place(l); err != nil {
			return fmt.Errorf("line %d: the file has changed: %w", l.number, err)
		}
		if some, bytes = append(some, l), bytes+len(l.String)+50*len(l.Sorted); len(some) < operate.Peeks && bytes < operate.AtOnce {
			return nil
		}
		err := c.put(ctx, some)
		some, bytes = nil, 0
		return err
	})
	if err == nil {
		err = c.put(ctx, some)
	}
	return err
}

// put imports some keys. Each is tried first under a key that nobody uses: what the scripts
// do not understand would let its caller pass.
func (c *importCommand) put(ctx context.Context, some []*countsLine) error {
	for _, l := range some {
		l.tried = runtime.NewKey().AddString("ratectl import " + strconv.FormatUint(rand.Uint64(), 36))
	}
	if err := c.write(ctx, some, true); err != nil {
		return err
	}
	states := make([]operate.State, len(some))
	errs := operate.Together(len(some), func(j int) (err error) {
		states[j], err = c.State(ctx, some[j].of, some[j].tried)
		return err
	})
	if _, err := c.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
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
		case errs[j] != nil:
			return errs[j]
		case states[j].State == operate.Broken:
			l.outcome = "bad"
			if c.bad++; c.bad <= maxBad {
				c.logger().Printf("line %d: %s", l.number, visible(l.text()+" is no count of its rule"))
			}
		default:
			good = append(good, l)
		}
	}
	if err := c.write(ctx, good, false); err != nil {
		return err
	}
	for _, l := range some {
		r := c.results[l.Rule]
		*map[string]*int{"imported": &r.Imported, "kept": &r.Kept, "lapsed": &r.Lapsed, "bad": &r.Bad}[l.outcome]++
	}
	return nil
}

// write writes the counts of some lines, or tries them under other keys. With -n it finds out
// what a write would do.
func (c *importCommand) write(ctx context.Context, some []*countsLine, try bool) error {
	how := "keep"
	if c.overwrite || try {
		how = "overwrite"
	}
	replies, rest := make([]*redis.Cmd, len(some)), make([][][]any, len(some))
	_, err := c.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for j, l := range some {
			l.to = l.redisKey
			pages := l.writes(how, l.ends)
			switch {
			case try:
				l.to, pages = bridge.LimiterOf(c.Limiter).RedisKey(c.LimitOf(l.of, l.tried)), l.writes(how, time.Now().Add(time.Minute))
			case c.dry:
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
			if err := c.Client.Eval(ctx, writeKey, []string{l.to}, page...).Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
