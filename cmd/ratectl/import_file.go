package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
)

// countsFile opens a file, or keeps standard input in one: it is read twice.
func (o *operator) countsFile(path string) (file *os.File, done func(), err error) {
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
	if _, err = io.Copy(file, o.in); err == nil {
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
	header, err := readCounts(file, func(n int, l *countsLine) error {
		keys++
		line, err := i.line(n, l)
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
			i.hashed = n
		}
		return nil
	})
	if i.hashed > 0 && header.Namespace != i.namespace {
		tell(i.hashed, "the key is a hash of one that was too long in %s: it is none in %s", namespaces(header.Namespace), namespaces(i.namespace))
	}
	if len(bad) > 0 && err != nil {
		bad = append(bad, err.Error())
	}
	if len(bad) > 0 {
		err = errors.New(strings.Join(bad, "; "))
	}
	return keys, err
}

// line finds the rule and the Redis key of a line.
func (i *importing) line(n int, l *countsLine) (*importedLine, error) {
	if l.Rule == "" || l.Key == nil {
		return nil, errors.New("it has no rule or no key")
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
