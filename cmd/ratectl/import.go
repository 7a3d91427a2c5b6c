package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

// An importLine is what has become of the keys of a rule.
type importLine struct {
	Rule     string `json:"rule"`
	Imported int    `json:"imported"`
	Kept     int    `json:"kept"`   // there is one already
	Lapsed   int    `json:"lapsed"` // it would have expired meanwhile
	Bad      int    `json:"bad"`
	DryRun   bool   `json:"dry_run,omitempty"`
}

func (l importLine) row() []string {
	n := strconv.Itoa
	return []string{l.Rule, n(l.Imported), n(l.Kept), n(l.Lapsed), n(l.Bad)}
}

// An imported line is one of a key, found to be of a rule.
type importedLine struct {
	*countsLine
	number   int
	declared declared
	redisKey string
	expires  time.Time
	outcome  string // as writeKey replies it, or bad
}

// An importing puts counts into Redis.
type importing struct {
	*operator
	seen    map[string]int // lines by Redis keys
	hashed  int            // a line whose key is a hash
	results map[string]*importLine
	bad     int
}

// maxBad is how many bad lines are told.
const maxBad = 20

// importCounts puts what export has printed into Redis.
func importCounts(ctx context.Context, o *operator, args []string) error {
	file, done, err := o.countsFile(args[0])
	if err != nil {
		return err
	}
	defer done()
	i := &importing{operator: o, seen: make(map[string]int), results: make(map[string]*importLine)}
	keys, err := i.examine(file)
	if err != nil {
		return usagef("%s: %v; nothing is imported", args[0], err)
	}
	o.warnOfClocks(ctx)
	if !o.dry {
		how := "keep those that are there"
		if o.overwrite {
			how = "overwrite those that are there, with all that was counted since"
		}
		if err := o.confirm(ctx, "import the counts of %d keys of %d rules in %s, and %s", keys, len(i.results), namespaces(o.namespace), how); err != nil {
			return err
		}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	err = i.run(ctx, file)
	var lines []importLine
	for _, d := range o.known {
		if l := i.results[o.reference(d)]; l != nil {
			lines = append(lines, *l)
		}
	}
	if printed := printEach(o, "RULE IMPORTED KEPT LAPSED BAD", lines, importLine.row); err == nil {
		err = printed
	}
	if err == nil && i.bad > 0 {
		err = fmt.Errorf("%d keys are not imported: their counts are none of their rules'", i.bad)
	}
	return err
}

// run imports all lines, some at a time.
func (i *importing) run(ctx context.Context, file io.Reader) error {
	var some []*importedLine
	bytes := 0
	_, err := readCounts(file, func(n int, l *countsLine) error {
		line, err := i.line(n, l)
		if err != nil {
			return fmt.Errorf("line %d: the file has changed: %w", n, err)
		}
		some, bytes = append(some, line), bytes+l.size()
		if len(some) < peeks && bytes < atOnce {
			return nil
		}
		err = i.put(ctx, some)
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
func (i *importing) put(ctx context.Context, some []*importedLine) error {
	tried := make([]string, len(some))
	keys := make([]*runtime.Key, len(some))
	var write []*importedLine
	for j, l := range some {
		keys[j] = runtime.NewKey().AddString("ratectl import " + strconv.FormatUint(rand.Uint64(), 36))
		tried[j] = i.limiter.RedisKey(i.limitOf(l.declared, keys[j]))
	}
	if err := i.write(ctx, some, "", func(j int) (string, time.Time) { return tried[j], time.Now().Add(time.Minute) }); err != nil {
		return err
	}
	errs := make([]error, len(some))
	var all sync.WaitGroup
	for j, l := range some {
		all.Go(func() { _, errs[j] = i.state(ctx, l.declared, keys[j]) })
	}
	all.Wait()
	if _, err := i.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, key := range tried {
			pipe.Unlink(ctx, key)
		}
		return nil
	}); err != nil {
		return i.explained(err)
	}
	for j, l := range some {
		switch {
		case errs[j] == nil:
			write = append(write, l)
		case runtime.ClassOf(errs[j]) == runtime.ClassWrongType:
			l.outcome = "bad"
			if i.bad++; i.bad <= maxBad {
				i.logger().Printf("line %d: %s", l.number, visible(l.text()+" is no count of its rule"))
			}
		default:
			return errs[j]
		}
	}
	how := "keep"
	if i.overwrite {
		how = "overwrite"
	}
	if i.dry {
		if err := i.look(ctx, write); err != nil {
			return err
		}
	} else if err := i.write(ctx, write, how, func(j int) (string, time.Time) { return write[j].redisKey, write[j].expires }); err != nil {
		return err
	}
	for _, l := range some {
		r := i.results[l.Rule]
		*map[string]*int{"imported": &r.Imported, "kept": &r.Kept, "lapsed": &r.Lapsed, "bad": &r.Bad}[l.outcome]++
	}
	return nil
}

// write writes the counts of some lines, each to a key that expires at a time.
func (i *importing) write(ctx context.Context, some []*importedLine, how string, to func(j int) (string, time.Time)) error {
	replies := make([]*redis.Cmd, len(some))
	var rest []func(pipe redis.Pipeliner)
	_, err := i.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for j, l := range some {
			key, expires := to(j)
			for n, args := range l.writes(how, expires) {
				if n == 0 {
					replies[j] = pipe.Eval(ctx, writeKey, []string{key}, args...)
					continue
				}
				rest = append(rest, func(pipe redis.Pipeliner) {
					if some[j].outcome == "imported" {
						pipe.Eval(ctx, writeKey, []string{key}, args...)
					}
				})
			}
		}
		return nil
	})
	if err != nil {
		return i.explained(err)
	}
	for j, l := range some {
		l.outcome, _ = replies[j].Text()
	}
	for _, more := range rest { // one at a time: they are large
		if _, err := i.client.Pipelined(ctx, func(pipe redis.Pipeliner) error { more(pipe); return nil }); err != nil {
			return i.explained(err)
		}
	}
	return nil
}

// look finds out what a write would do.
func (i *importing) look(ctx context.Context, some []*importedLine) error {
	there := make([]*redis.IntCmd, len(some))
	if _, err := i.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for j, l := range some {
			there[j] = pipe.Exists(ctx, l.redisKey)
		}
		return nil
	}); err != nil {
		return i.explained(err)
	}
	for j, l := range some {
		switch {
		case !l.expires.After(time.Now()):
			l.outcome = "lapsed"
		case there[j].Val() == 1 && !i.overwrite:
			l.outcome = "kept"
		default:
			l.outcome = "imported"
		}
	}
	return nil
}
