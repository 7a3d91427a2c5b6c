package operate

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime/rule"
)

type export struct {
	*Core
	encoder *json.Encoder
	keys    int
	foreign int // not the limiter's
	seen    map[string]bool
}

// Export writes the counts of some rules as lines of JSON, or if rules is nil those of all, and the overrides
// with their history.
func (c *Core) Export(ctx context.Context, to io.Writer, rules []Rule) error {
	c.warnOfClocks(ctx)
	out := bufio.NewWriter(to)
	e := &export{Core: c, encoder: json.NewEncoder(out), seen: make(map[string]bool)}
	e.encoder.SetEscapeHTML(false)
	if err := e.encoder.Encode(countsLine{Export: new(exportVersion), Namespace: c.Namespace}); err != nil {
		return err
	}
	of := rules
	if rules == nil {
		of = c.Rules
	}
	err := c.Visit(ctx, of, e.write)
	lines := e.keys
	if err == nil && rules == nil {
		lines, err = e.overrides(ctx)
	}
	if err == nil {
		err = e.encoder.Encode(countsLine{Keys: &lines})
	}
	if err = cmp.Or(err, out.Flush()); err != nil {
		return fmt.Errorf("the export is a part, without its last line: %w", err)
	}
	if e.keys == 0 {
		err = c.WrongNamespace(ctx, of)
	}
	if err == nil && e.foreign > 0 {
		c.warnf("%d keys are left out: they are not what the limiter writes; see ratectl keys RULE -state broken", e.foreign)
	}
	return err
}

// overrides writes the overrides and their history, and returns how many lines there are now.
func (e *export) overrides(ctx context.Context) (lines int, err error) {
	if e.Hash == "" {
		e.warnf("overrides and their history are not exported: name the hash with -overrides")
		return e.keys, nil
	}
	editor, err := e.Editor()
	if err != nil {
		return e.keys, err
	}
	b, err := editor.Backup(ctx)
	for _, field := range slices.Sorted(maps.Keys(b.Fields)) {
		err = cmp.Or(err, e.encoder.Encode(countsLine{Override: &field, Says: b.Fields[field]}))
	}
	for _, change := range b.History {
		err = cmp.Or(err, e.encoder.Encode(countsLine{Change: change}))
	}
	return e.keys + len(b.Fields) + len(b.History), err
}

func (e *export) write(ctx context.Context, r Rule, prefix string, found []bridge.FoundKey) error {
	var lines []*countsLine
	for _, f := range found {
		if e.seen[f.Key] {
			continue // Redis may list a key twice
		}
		e.seen[f.Key] = true
		key, err := rule.ParseKey(f.Text)
		if err != nil {
			e.foreign++
			continue
		}
		lines = append(lines, &countsLine{Rule: r.Reference, Key: new(key.Pattern()), Tag: f.Key[len(prefix)+len(f.Text):], redisKey: f.Key})
	}
	replies := make([]*redis.Cmd, len(lines))
	if _, err := e.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, l := range lines {
			replies[i] = pipe.Eval(ctx, readKey, []string{l.redisKey}, 0, page-1)
		}
		return nil
	}); err != nil && err != redis.Nil {
		return err
	}
	for i, l := range lines {
		more, err := l.fill(replies[i])
		for first := page; more && err == nil; first += page { // one at a time: they are large
			expires := l.Expires
			more, err = l.fill(e.Client.Eval(ctx, readKey, []string{l.redisKey}, first, first+page-1))
			l.Expires = expires
		}
		if err == redis.Nil {
			e.foreign++
		} else if err != nil {
			return err
		}
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
