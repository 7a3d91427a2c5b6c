package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
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
func (i *importing) examine(file io.Reader) (keys int, err error) {
	var bad []string
	tell := func(n int, format string, args ...any) {
		bad = append(bad, fmt.Sprintf("line %d: ", n)+fmt.Sprintf(format, args...))
	}
	i.backup.Fields = make(map[string]string)
	var hashed []int
	header, err := readCounts(file, func(n int, l *countsLine) error {
		switch {
		case l.Override != nil:
			i.backup.Fields[*l.Override] = l.Says
			return nil
		case l.Change != "":
			i.backup.History = append(i.backup.History, l.Change)
			return nil
		}
		keys++
		line, err := i.line(n, l)
		if err != nil && i.skip {
			keys--
			i.leave(n, err.Error())
			return nil
		}
		if err != nil {
			tell(n, "%v", err)
			if len(bad) == maxBad {
				return errors.New("and perhaps more")
			}
			return nil
		}
		if i.results[l.Rule] == nil {
			i.results[l.Rule] = &importLine{Rule: l.Rule, DryRun: i.dry}
		}
		if before := i.seen[line.redisKey]; before > 0 {
			tell(n, "it has the key of line %d", before)
		}
		i.seen[line.redisKey] = n
		if strings.HasPrefix(*l.Key, "%sha256-") {
			hashed = append(hashed, n)
		}
		return nil
	})
	for _, n := range hashed {
		why := fmt.Sprintf("the key is a hash of one that was too long in %s: it is none in %s", namespaces(header.Namespace), namespaces(i.namespace))
		switch {
		case header.Namespace == i.namespace:
		case i.skip:
			keys--
			i.leave(n, why)
		case len(bad) < maxBad:
			tell(n, "%s", why)
		}
	}
	if err := i.renameOverrides(); err != nil {
		bad = append(bad, err.Error())
	}
	if len(bad) > 0 && err != nil {
		bad = append(bad, err.Error())
	}
	if len(bad) > 0 {
		err = errors.New(strings.Join(bad, "; "))
	}
	return keys, err
}

// renameOverrides has overrides be of renamed rules. The error says which of these the file does not name.
func (i *importing) renameOverrides() error {
	names := make(map[string]string)
	for old, d := range i.renamed {
		names[old] = d.Name
	}
	found, err := i.backup.Rename(names)
	for _, old := range slices.Sorted(maps.Keys(names)) {
		if err == nil && !found[old] && !i.named[old] {
			err = fmt.Errorf("-rename %s: the file says nothing of such a rule", old)
		}
	}
	return err
}

// leave leaves a line out, and says why.
func (i *importing) leave(n int, why string) {
	if i.left[n] = true; len(i.left) <= maxBad {
		i.logger().Printf("line %d is left out: %s", n, visible(why))
	}
}

// line finds the rule and the Redis key of a line.
func (i *importing) line(n int, l *countsLine) (*importedLine, error) {
	if l.Rule == "" || l.Key == nil {
		return nil, errors.New("it has no rule or no key")
	}
	i.named[l.Rule] = true
	if d, is := i.renamed[l.Rule]; is {
		l.Rule = i.reference(d)
	}
	d, err := i.rule(l.Rule)
	if err != nil {
		return nil, err
	}
	if l.Rule != i.reference(d) {
		return nil, fmt.Errorf("%.100q is not how a rule of the listing is named here", l.Rule)
	}
	key, err := runtime.ParseKey(*l.Key)
	if err != nil {
		return nil, fmt.Errorf("%.100q is no key: %w", *l.Key, err)
	}
	if err := i.fits(d, key, argsOf(*l.Key)); err != nil {
		return nil, err
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	line := &importedLine{countsLine: l, number: n, declared: d, redisKey: i.limiter.RedisKey(i.limitOf(d, key))}
	if !strings.HasSuffix(line.redisKey, l.Tag) || i.tagOf(d, line.redisKey) != l.Tag {
		return nil, fmt.Errorf("%s counts by another algorithm, or other buckets, than the rule does here: its Redis key ends with %q, and here with %q", l.text(), l.Tag, i.tagOf(d, line.redisKey))
	}
	line.expires = time.Now().Add(i.limiter.KeysOf(d.Rule).Expiry) // it had none, which somebody has taken away
	if l.Expires != nil {
		line.expires = *l.Expires
	}
	return line, nil
}

// argsOf returns a key as the arguments of a command.
func argsOf(key string) []string {
	if key == "" {
		return nil // of a rule without a key, or an empty part
	}
	return []string{key}
}

// tagOf returns what ends a Redis key of a rule.
func (i *importing) tagOf(d declared, redisKey string) string {
	group := i.limiter.KeysOf(d.Rule)
	text, _ := group.Text(redisKey)
	return redisKey[len(group.Prefix)+len(text):]
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
	n := strconv.Itoa
	return []string{l.Rule, n(l.Imported), n(l.Kept), n(l.Lapsed), n(l.Bad)}
}

// An imported line is one of a key, found to be of a rule.
type importedLine struct {
	*countsLine
	number   int
	declared declared
	redisKey string
	tried    string // a key that nobody uses
	to       string // the one of both that is written
	expires  time.Time
	outcome  string // as writeKey replies it, or bad
}

// An importing puts counts into Redis.
type importing struct {
	*session
	dry, overwrite bool
	skip           bool                // leave out what does not fit
	renamed        map[string]declared // rules by their names in the file
	named          map[string]bool     // in the file
	left           map[int]bool        // lines that are left out
	seen           map[string]int      // lines by Redis keys
	backup         override.Backup
	results        map[string]*importLine
	bad            int
}

// maxBad is how many bad lines are told.
const maxBad = 20
