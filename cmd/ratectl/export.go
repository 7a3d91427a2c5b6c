package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime/rule"
)

// An exportCommand prints the counts of rules, or of all.
type exportCommand struct {
	session
	encoder *json.Encoder // to standard output
	keys    int
	foreign int // not the limiter's
	seen    map[string]bool
}

func (c *exportCommand) about() about {
	return about{
		name: "export", args: "[RULE...]", short: "print the counts of rules, to keep or to move them", needs: judgesKeys, max: -1,
		long: "Prints every key of the rules, or of all, as lines of JSON: what is counted, whether a block is on, and until when. Of all rules it prints the overrides and their history too. The last line says how many there were. Charges that are made meanwhile may be missing. Walks over the database.",
	}
}

func (c *exportCommand) run(ctx context.Context, args []string) error {
	var rules []operate.Rule
	for _, name := range args {
		d, err := c.rule(name)
		if err != nil {
			return err
		}
		rules = append(rules, d)
	}
	if len(args) == 0 {
		rules = c.Rules
	}
	c.warnOfClocks(ctx)
	out := bufio.NewWriter(c.out)
	c.encoder, c.seen = encoderTo(out), make(map[string]bool)
	if err := c.encoder.Encode(countsLine{Export: new(exportVersion), Namespace: c.Namespace}); err != nil {
		return err
	}
	err := c.Visit(ctx, rules, c.write)
	lines := c.keys
	if err == nil && len(args) == 0 {
		lines, err = c.overridesToo(ctx)
	}
	if err == nil {
		err = c.encoder.Encode(countsLine{Keys: &lines})
	}
	if err = cmp.Or(err, out.Flush()); err == nil && c.keys == 0 {
		err = c.wrongNamespace(ctx, rules)
	}
	if err == nil && c.foreign > 0 {
		c.logger().Printf("%d keys are left out: they are not what the limiter writes; see ratectl keys RULE -state broken", c.foreign)
	}
	return err
}

// overridesToo prints the overrides and their history, and returns how many lines there are now.
func (c *exportCommand) overridesToo(ctx context.Context) (lines int, err error) {
	if c.overrides == "" {
		c.logger().Print("overrides and their history are not exported: name the hash with -overrides")
		return c.keys, nil
	}
	editor, err := c.editor()
	if err != nil {
		return c.keys, err
	}
	b, err := editor.Backup(ctx)
	for _, field := range slices.Sorted(maps.Keys(b.Fields)) {
		err = cmp.Or(err, c.encoder.Encode(countsLine{Override: &field, Says: b.Fields[field]}))
	}
	for _, change := range b.History {
		err = cmp.Or(err, c.encoder.Encode(countsLine{Change: change}))
	}
	return c.keys + len(b.Fields) + len(b.History), err
}

// write reads some keys of a rule, and prints them.
func (c *exportCommand) write(ctx context.Context, d operate.Rule, prefix string, found []bridge.FoundKey) error {
	var lines []*countsLine
	for _, f := range found {
		if c.seen[f.Key] {
			continue // Redis may list a key twice
		}
		c.seen[f.Key] = true
		key, err := rule.ParseKey(f.Text)
		if err != nil {
			c.foreign++
			continue
		}
		lines = append(lines, &countsLine{Rule: d.Reference, Key: new(key.Pattern()), Tag: f.Key[len(prefix)+len(f.Text):], redisKey: f.Key})
	}
	replies := make([]*redis.Cmd, len(lines))
	if _, err := c.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, l := range lines {
			replies[i] = pipe.Eval(ctx, readKey, []string{l.redisKey}, 0, page-1)
		}
		return nil
	}); err != nil && err != redis.Nil {
		return err
	}
	for i, l := range lines {
		more, is, err := l.fill(replies[i])
		for first := page; more && err == nil; first += page { // one at a time: they are large
			expires := l.Expires
			replies[i] = c.Client.Eval(ctx, readKey, []string{l.redisKey}, first, first+page-1)
			more, is, err = l.fill(replies[i])
			l.Expires = expires
		}
		if err != nil {
			return err
		}
		if !is && replies[i].Err() == redis.Nil {
			c.foreign++
		}
	}
	for _, l := range lines {
		if l.check() != nil {
			continue // it has gone, or is somebody else's
		}
		c.keys++
		if err := c.encoder.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// warnOfClocks warns if the clocks of Redis and of this machine are apart: counts have the times
// of the clock that they were made by.
func (s *session) warnOfClocks(ctx context.Context) {
	_ = s.Masters(ctx, func(ctx context.Context, c *redis.Client) error {
		if _, apart, err := answers(ctx, c); err == nil && apart > clocksApart {
			s.logger().Printf("the clock of %s is %v from the clock here: counts mean times of the Redis that they were made in, so windows end early or late in another", c.Options().Addr, apart)
		}
		return nil
	})
}
