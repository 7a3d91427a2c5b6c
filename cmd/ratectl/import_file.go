package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime/rule"
)

// countsFile opens a file, or keeps standard input in one: it is read twice.
func (s *session) countsFile(path string) (file *os.File, done func(), err error) {
	if path != "-" {
		if file, err = os.Open(path); err != nil {
			return nil, nil, usagef("%v", err)
		}
		return file, func() { _ = file.Close() }, nil
	}
	if file, err = os.CreateTemp("", "ratectl-import-"); err != nil {
		return nil, nil, err
	}
	done = func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}
	if _, err = io.Copy(file, s.in); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return file, done, nil
}

// examine reads all of a file before anything is imported, and returns how many keys it has.
func (c *importCommand) examine(file io.Reader) (keys int, err error) {
	var bad []string
	reject := func(n int, why string) error {
		if c.skip {
			keys--
			c.left[n] = true
			if len(c.left) <= maxBad {
				c.logger().Printf("line %d is left out: %s", n, visible(why))
			}
			return nil
		}
		if bad = append(bad, fmt.Sprintf("line %d: %s", n, why)); len(bad) == maxBad {
			return errors.New("and perhaps more")
		}
		return nil
	}
	var hashed []int
	header, err := readCounts(file, func(l *countsLine) error {
		switch {
		case l.Override != nil:
			c.backup.Fields[*l.Override] = l.Says
			return nil
		case l.Change != "":
			c.backup.History = append(c.backup.History, l.Change)
			return nil
		}
		keys++
		if err := c.place(l); err != nil {
			return reject(l.number, err.Error())
		}
		if c.results[l.Rule] == nil {
			c.results[l.Rule] = &importLine{Rule: l.Rule, DryRun: c.dry}
		}
		if before := c.seen[l.redisKey]; before > 0 {
			bad = append(bad, fmt.Sprintf("line %d: it has the key of line %d", l.number, before))
		}
		c.seen[l.redisKey] = l.number
		if strings.HasPrefix(*l.Key, "%sha256-") {
			hashed = append(hashed, l.number)
		}
		return nil
	})
	for _, n := range hashed {
		if header.Namespace != c.Namespace && len(bad) < maxBad {
			_ = reject(n, fmt.Sprintf("the key is a hash of one that was too long in %s: it is none in %s", namespaces(header.Namespace), namespaces(c.Namespace)))
		}
	}
	if err := c.renameOverrides(); err != nil {
		bad = append(bad, err.Error())
	}
	if len(bad) > 0 {
		if err != nil {
			bad = append(bad, err.Error())
		}
		err = errors.New(strings.Join(bad, "; "))
	}
	return keys, err
}

// renameOverrides has overrides be of renamed rules. The error says which of these the file does not name.
func (c *importCommand) renameOverrides() error {
	names := make(map[string]string)
	for old, d := range c.renamed {
		names[old] = d.Name
	}
	found, err := c.backup.Rename(names)
	for _, old := range slices.Sorted(maps.Keys(names)) {
		if err == nil && !found[old] && !c.named[old] {
			err = fmt.Errorf("-rename %s: the file says nothing of such a rule", old)
		}
	}
	return err
}

// place finds the rule and the Redis key of a line.
func (c *importCommand) place(l *countsLine) (err error) {
	if l.Rule == "" || l.Key == nil {
		return errors.New("it has no rule or no key")
	}
	c.named[l.Rule] = true
	if d, is := c.renamed[l.Rule]; is {
		l.Rule = d.Reference
	}
	if l.of, err = c.rule(l.Rule); err != nil {
		return err
	}
	if l.Rule != l.of.Reference {
		return fmt.Errorf("%.100q is not how a rule of the listing is named here", l.Rule)
	}
	key, err := rule.ParseKey(*l.Key)
	if err != nil {
		return fmt.Errorf("%.100q is no key: %w", *l.Key, err)
	}
	var args []string
	if *l.Key != "" { // which is of a rule without a key, or an empty part
		args = []string{*l.Key}
	}
	if err := cmp.Or(c.fits(l.of, key, args), l.check()); err != nil {
		return err
	}
	group := bridge.LimiterOf(c.Limiter).KeysOf(l.of.Rule)
	l.redisKey = bridge.LimiterOf(c.Limiter).RedisKey(c.LimitOf(l.of, key))
	text, _ := group.Text(l.redisKey)
	if tag := l.redisKey[len(group.Prefix)+len(text):]; tag != l.Tag {
		return fmt.Errorf("%s counts by another algorithm, or other buckets, than the rule does here: its Redis key ends with %q, and here with %q", l.text(), l.Tag, tag)
	}
	l.ends = time.Now().Add(group.Expiry) // it had none, which somebody has taken away
	if l.Expires != nil {
		l.ends = *l.Expires
	}
	return nil
}

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
	return rowOf(l.Rule, l.Imported, l.Kept, l.Lapsed, l.Bad)
}

// maxBad is how many bad lines are told.
const maxBad = 20
