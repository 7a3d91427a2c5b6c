package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

// An exporting writes keys to standard output.
type exporting struct {
	*operator
	encoder *json.Encoder
	keys    int
	foreign int // not the limiter's
	seen    map[string]bool
}

// export prints the counts of rules, or of all.
func export(ctx context.Context, o *operator, args []string) error {
	rules, err := o.rulesNamed(args)
	if err != nil {
		return err
	}
	o.warnOfClocks(ctx)
	out := bufio.NewWriter(o.out)
	e := &exporting{operator: o, encoder: json.NewEncoder(out), seen: make(map[string]bool)}
	e.encoder.SetEscapeHTML(false)
	if err := e.encoder.Encode(countsLine{Export: new(exportVersion), Namespace: o.namespace}); err != nil {
		return err
	}
	err = o.visit(ctx, rules, e.write)
	if err == nil {
		err = e.encoder.Encode(countsLine{Keys: &e.keys})
	}
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	if err == nil && e.foreign > 0 {
		o.logger().Printf("%d keys are left out: they are not what the limiter writes; see ratectl keys RULE -state broken", e.foreign)
	}
	return err
}

// write reads some keys of a rule, and prints them.
func (e *exporting) write(ctx context.Context, d declared, prefix string, found []runtime.FoundKey) error {
	var lines []*countsLine
	var keys []string
	for _, f := range found {
		if e.seen[f.Key] {
			continue // Redis may list a key twice
		}
		e.seen[f.Key] = true
		key, err := runtime.ParseKey(f.Text)
		if err != nil {
			e.foreign++
			continue
		}
		lines = append(lines, &countsLine{Rule: e.reference(d), Key: new(key.Pattern()), Tag: f.Key[len(prefix)+len(f.Text):]})
		keys = append(keys, f.Key)
	}
	for first, left := 0, slices.Clone(lines); len(keys) > 0; first += page {
		replies := make([]*redis.Cmd, len(keys))
		_, err := e.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, key := range keys {
				replies[i] = pipe.Eval(ctx, readKey, []string{key}, first, first+page-1)
			}
			return nil
		})
		if err != nil && err != redis.Nil {
			return err
		}
		var again []*countsLine
		var longer []string
		for i, l := range left {
			expires := l.Expires
			more, is, err := l.fill(replies[i])
			switch {
			case err != nil:
				return err
			case !is && replies[i].Err() == redis.Nil:
				e.foreign++
			}
			if first > 0 {
				l.Expires = expires
			}
			if more {
				again, longer = append(again, l), append(longer, keys[i])
			}
		}
		left, keys = again, longer
	}
	for _, l := range lines {
		if l.check() != nil {
			continue // it has gone, or is somebody else's
		}
		e.keys++
		if err := e.encoder.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// rulesNamed returns the rules that arguments name, or all.
func (o *operator) rulesNamed(names []string) (rules []declared, err error) {
	if len(names) == 0 {
		return o.known, nil
	}
	for _, name := range names {
		d, err := o.rule(name)
		if err != nil {
			return nil, err
		}
		rules = append(rules, d)
	}
	return rules, nil
}

// reference returns by what [operator.rule] finds a rule.
func (o *operator) reference(d declared) string {
	if found, err := o.rule(d.Name); err == nil && found.Rule == d.Rule {
		return d.Name
	}
	return d.Prefix
}

// warnOfClocks warns if the clocks of Redis and of this machine are apart: counts have the times
// of the clock that they were made by.
func (o *operator) warnOfClocks(ctx context.Context) {
	_ = o.masters(ctx, func(ctx context.Context, c *redis.Client) error {
		if _, apart, err := answers(ctx, c); err == nil && apart > clocksApart {
			o.logger().Printf("the clock of %s is %v from the clock here: counts mean times of the Redis that they were made in, so windows end early or late in another", c.Options().Addr, apart)
		}
		return nil
	})
}

// lines reads lines of any length up to maxLine.
type lines struct{ in *bufio.Reader }

func newLines(in io.Reader) *lines { return &lines{bufio.NewReaderSize(in, 1<<16)} }

// next returns a line without its end, or io.EOF.
func (l *lines) next() (line []byte, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, errLongLine
		case err == bufio.ErrBufferFull:
		case err == io.EOF && len(line) > 0, err == nil:
			return line, nil
		default:
			return nil, err
		}
	}
}
