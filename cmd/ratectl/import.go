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

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// renamed returns rules by the names that they have in the file.
func (s *session) renamed() (map[string]declared, error) {
	rules := make(map[string]declared)
	for _, text := range s.renames {
		old, name, ok := strings.Cut(text, "=")
		if !ok || old == "" {
			return nil, usagef("-rename %s: write OLD=NEW", text)
		}
		if _, twice := rules[old]; twice {
			return nil, usagef("-rename %s: %s is renamed twice", text, old)
		}
		d, err := s.rule(name)
		if err != nil {
			return nil, err
		}
		rules[old] = d
	}
	return rules, nil
}

// importCounts puts what export has printed into Redis.
func (s *session) importCounts(ctx context.Context, args []string) error {
	file, done, err := s.countsFile(args[0])
	if err != nil {
		return err
	}
	defer done()
	renamed, err := s.renamed()
	if err != nil {
		return err
	}
	i := &importing{session: s, renamed: renamed, named: map[string]bool{}, left: map[int]bool{}, seen: map[string]int{}, results: map[string]*importLine{}, backup: override.Backup{Fields: map[string]string{}}}
	keys, err := i.examine(file)
	if err != nil {
		return usagef("%s: %v; nothing is imported", args[0], err)
	}
	s.warnOfClocks(ctx)
	n := len(i.backup.Fields) + len(i.backup.History)
	if n > 0 && s.overrides == "" && !s.skip {
		return usagef("%s: it has overrides and their history: name the hash with -overrides, or leave them out by -skip; nothing is imported", args[0])
	}
	if !s.dry {
		how := "keep those that are there"
		if s.overwrite {
			how = "overwrite those that are there, with all that was counted since"
		}
		if err := s.confirm(ctx, s.yes, "import the counts of %d keys of %d rules and %d overrides in %s, and %s", keys, len(i.results), len(i.backup.Fields), namespaces(s.namespace), how); err != nil {
			return err
		}
	}
	var lines []importLine
	if n > 0 && s.overrides != "" {
		if lines, err = i.restore(ctx); err != nil {
			return err
		}
	}
	if !s.dry {
		did := "import"
		if s.overwrite {
			did += " -overwrite"
		}
		did = fmt.Sprintf("%s of %d keys of %s", did, keys, strings.Join(slices.Sorted(maps.Keys(i.results)), ", "))
		if err := s.note(ctx, override.Target{Rule: override.All}, did[:min(len(did), 500)], "", s.why); err != nil {
			return err
		}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	err = i.all(ctx, file)
	for _, d := range s.known {
		if l := i.results[s.reference(d)]; l != nil {
			lines = append(lines, *l)
		}
	}
	if err = cmp.Or(err, printEach(&s.printer, "RULE IMPORTED KEPT LAPSED BAD", lines, importLine.row)); err == nil && i.bad > 0 {
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
		if l.ofOverrides() || i.left[l.number] {
			return nil
		}
		if err := i.place(l); err != nil {
			return fmt.Errorf("line %d: the file has changed: %w", l.number, err)
		}
		if some, bytes = append(some, l), bytes+l.size(); len(some) < peeks && bytes < atOnce {
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
