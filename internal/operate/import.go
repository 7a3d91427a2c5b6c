package operate

import (
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

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// ImportOptions say how an export is imported.
type ImportOptions struct {
	Overwrite bool            // counts and overrides that are there are replaced
	Skip      bool            // lines that do not fit are left out
	Try       bool            // nothing is changed
	Renames   map[string]Rule // by the names that rules have in the file
	Who, Why  string
}

type Import struct {
	*Core
	ImportOptions
	Keys int // that the file has

	file    io.ReadSeeker
	named   map[string]bool // rules, in the file
	left    map[int]bool    // lines that are left out
	seen    map[string]int  // lines by Redis keys
	backup  override.Backup
	results map[string]*Imported
	bad     int
}

// Import reads an export as a whole, and changes nothing. The error says what of it cannot be imported.
func (c *Core) Import(file io.ReadSeeker, o ImportOptions) (*Import, error) {
	m := &Import{Core: c, ImportOptions: o, file: file, named: map[string]bool{}, left: map[int]bool{}, seen: map[string]int{}, results: map[string]*Imported{}}
	m.backup.Fields = map[string]string{}
	if err := m.examine(); err != nil {
		return nil, Wrongf("%v; nothing is imported", err)
	}
	if m.hasOverrides() && c.Hash == "" && !o.Skip {
		return nil, Wrongf("it has overrides and their history: name the hash with -overrides, or leave them out by -skip; nothing is imported")
	}
	return m, nil
}

func (i *Import) hasOverrides() bool { return len(i.backup.Fields)+len(i.backup.History) > 0 }

func (i *Import) String() string {
	how := "keep those that are there"
	if i.Overwrite {
		how = "overwrite those that are there, with all that was counted since"
	}
	return fmt.Sprintf("the counts of %d keys of %d rules and %d overrides in %s, and %s", i.Keys, len(i.results), len(i.backup.Fields), Namespaces(i.Namespace), how)
}

// Run imports. It is in the history before it begins. The error may be of some lines alone.
func (i *Import) Run(ctx context.Context) (lines []Imported, err error) {
	i.warnOfClocks(ctx)
	if i.hasOverrides() && i.Hash != "" {
		if lines, err = i.restore(ctx); err != nil {
			return lines, err
		}
	}
	if !i.Try {
		did := "import"
		if i.Overwrite {
			did = "import -overwrite"
		}
		did = fmt.Sprintf("%s of %d keys of %s", did, i.Keys, strings.Join(slices.Sorted(maps.Keys(i.results)), ", "))
		if err := i.Note(ctx, override.Record{Target: override.Target{Rule: override.All}, Who: i.Who, Why: i.Why, Did: did[:min(len(did), 500)]}); err != nil {
			return lines, err
		}
	}
	if _, err := i.file.Seek(0, io.SeekStart); err != nil {
		return lines, err
	}
	err = i.all(ctx)
	for _, r := range i.Rules {
		if l := i.results[r.Reference]; l != nil {
			lines = append(lines, *l)
		}
	}
	if err != nil {
		return lines, fmt.Errorf("only a part is imported, and perhaps more than is counted here: import it again, which keeps what is there: %w", err)
	}
	if i.bad > 0 {
		err = fmt.Errorf("%d keys are not imported: their counts are none of their rules'", i.bad)
	} else if len(i.left) > 0 {
		err = fmt.Errorf("%d lines are left out, which do not fit", len(i.left))
	}
	return lines, err
}

// restore imports the overrides and their history.
func (i *Import) restore(ctx context.Context) ([]Imported, error) {
	editor, err := i.Editor()
	if err != nil {
		return nil, err
	}
	fields, records, err := editor.Restore(ctx, i.backup, i.Overwrite, override.Edit{Who: i.Who, Why: strings.TrimSuffix("import: "+i.Why, ": "), Try: i.Try})
	return []Imported{
		{Rule: "(overrides)", Imported: fields, Kept: len(i.backup.Fields) - fields, DryRun: i.Try},
		{Rule: "(history)", Imported: records, Kept: len(i.backup.History) - records, DryRun: i.Try},
	}, err
}

// all imports all lines, some at a time.
func (i *Import) all(ctx context.Context) error {
	var some []*countsLine
	bytes := 0
	_, err := readCounts(i.file, func(l *countsLine) error {
		if l.Override != nil || l.Change != "" || i.left[l.number] {
			return nil
		}
		if err := i.place(l); err != nil {
			return fmt.Errorf("line %d: the file has changed: %w", l.number, err)
		}
		if some, bytes = append(some, l), bytes+len(l.String)+50*len(l.Sorted); len(some) < Peeks && bytes < AtOnce {
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
func (i *Import) put(ctx context.Context, some []*countsLine) error {
	for _, l := range some {
		l.tried = runtime.NewKey().AddString("ratectl import " + strconv.FormatUint(rand.Uint64(), 36))
	}
	if err := i.write(ctx, some, true); err != nil {
		return err
	}
	states := make([]State, len(some))
	errs := Together(len(some), func(j int) (err error) {
		states[j], err = i.State(ctx, some[j].of, some[j].tried)
		return err
	})
	if _, err := i.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, l := range some {
			pipe.Unlink(ctx, l.to)
		}
		return nil
	}); err != nil {
		return err
	}
	var good []*countsLine
	for j, l := range some {
		if errs[j] != nil {
			return errs[j]
		}
		if states[j].State == Broken {
			l.outcome = "bad"
			if i.bad++; i.bad <= maxBad {
				i.warnf("line %d: %s is no count of its rule", l.number, l.text())
			}
		} else {
			good = append(good, l)
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
func (i *Import) write(ctx context.Context, some []*countsLine, try bool) error {
	how := "keep"
	if i.Overwrite || try {
		how = "overwrite"
	}
	replies, rest := make([]*redis.Cmd, len(some)), make([][][]any, len(some))
	_, err := i.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for j, l := range some {
			l.to = l.redisKey
			pages := l.writes(how, l.ends)
			if try {
				l.to, pages = bridge.LimiterOf(i.Limiter).RedisKey(i.LimitOf(l.of, l.tried)), l.writes(how, time.Now().Add(time.Minute))
			} else if i.Try {
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
			if err := i.Client.Eval(ctx, writeKey, []string{l.to}, page...).Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
