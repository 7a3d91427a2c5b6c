package operate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime/rule"
)

// examine reads all of the file before anything is imported.
func (i *Import) examine() (err error) {
	var bad []string
	reject := func(n int, why string) error {
		if i.Skip {
			i.Keys--
			i.left[n] = true
			if len(i.left) <= maxBad {
				i.warnf("line %d is left out: %s", n, why)
			}
			return nil
		}
		if bad = append(bad, fmt.Sprintf("line %d: %s", n, why)); len(bad) == maxBad {
			return errors.New("and perhaps more")
		}
		return nil
	}
	var hashed []int
	header, err := readCounts(i.file, func(l *countsLine) error {
		if l.Override != nil {
			i.backup.Fields[*l.Override] = l.Says
			return nil
		}
		if l.Change != "" {
			i.backup.History = append(i.backup.History, l.Change)
			return nil
		}
		i.Keys++
		if err := i.place(l); err != nil {
			return reject(l.number, err.Error())
		}
		if i.results[l.Rule] == nil {
			i.results[l.Rule] = &Imported{Rule: l.Rule, DryRun: i.Try}
		}
		if before := i.seen[l.redisKey]; before > 0 {
			bad = append(bad, fmt.Sprintf("line %d: it has the key of line %d", l.number, before))
		}
		i.seen[l.redisKey] = l.number
		if strings.HasPrefix(*l.Key, "%sha256-") {
			hashed = append(hashed, l.number)
		}
		return nil
	})
	for _, n := range hashed {
		if header.Namespace != i.Namespace && len(bad) < maxBad {
			_ = reject(n, fmt.Sprintf("the key is a hash of one that was too long in %s: it is none in %s", Namespaces(header.Namespace), Namespaces(i.Namespace)))
		}
	}
	if err := i.renameOverrides(); err != nil {
		bad = append(bad, err.Error())
	}
	if len(bad) > 0 {
		if err != nil {
			bad = append(bad, err.Error())
		}
		err = errors.New(strings.Join(bad, "; "))
	}
	return err
}

// renameOverrides has overrides be of renamed rules. The error says which of these the file does not name.
func (i *Import) renameOverrides() error {
	names := make(map[string]string)
	for old, d := range i.Renames {
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

// place finds the rule and the Redis key of a line.
func (i *Import) place(l *countsLine) (err error) {
	if l.Rule == "" || l.Key == nil {
		return errors.New("it has no rule or no key")
	}
	i.named[l.Rule] = true
	if d, is := i.Renames[l.Rule]; is {
		l.Rule = d.Reference
	}
	if l.of, err = i.Rule(l.Rule); err != nil {
		return err
	}
	if l.Rule != l.of.Reference {
		return fmt.Errorf("%.100q is not how a rule of the listing is named here", l.Rule)
	}
	key, err := rule.ParseKey(*l.Key)
	if err != nil {
		return fmt.Errorf("%.100q is no key: %w", *l.Key, err)
	}
	n := 1 + strings.Count(key.String(), ":")
	if *l.Key == "" { // of a rule without a key, or an empty part
		n = 0
	}
	if err := cmp.Or(l.of.Fits(key, n), l.check()); err != nil {
		return err
	}
	group := bridge.LimiterOf(i.Limiter).KeysOf(l.of.Rule)
	l.redisKey = bridge.LimiterOf(i.Limiter).RedisKey(i.LimitOf(l.of, key))
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

type Imported struct {
	Rule     string `json:"rule"`
	Imported int    `json:"imported"`
	Kept     int    `json:"kept"`   // there is one already
	Lapsed   int    `json:"lapsed"` // it would have expired meanwhile
	Bad      int    `json:"bad"`
	DryRun   bool   `json:"dry_run,omitempty"`
}

const maxBad = 20
