// Package accounts reads the counts of rules with a ledger.
//
// It is handed the plans of such rules, and told of each charge that a store makes. It promises that
// a key is told until its count was read after its last charge, by [Accounts.Charged] or, where there
// were too many, by [Accounts.Scan]; and that a count is restored once. No call waits for it.
package accounts

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/calendar"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/server"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
	"github.com/rategen/rategen/runtime/rule"
)

const (
	// most is how many keys [Accounts] remember.
	most = 100_000
	// batch is how many keys are read at a time.
	batch = 128
	// found is how many keys a scan hands on at a time: Postgres writes as many by a statement.
	found = 1000
	// usualEvery is how often [Accounts] are read.
	usualEvery = 5 * time.Second
)

// Accounts are the rules with a ledger of limiters on a store, and the keys that were charged.
type Accounts struct {
	Store  terms.Store
	Client rediswire.Client

	accounts findings.Map[about, account]
	mu       sync.Mutex
	opened   int // how many read it
	keys     map[string]*account
	over     bool // there were more
	every    time.Duration
	told     time.Time // when all was last exported
	made     time.Time // when the first rule was added
}

// An account is a plan by which keys are charged.
type account struct {
	*plan.Plan
	namespace string
	claimed   atomic.Pointer[time.Time]
	owner     atomic.Pointer[string] // the name of the rule to which its keys are billed
}

type about struct {
	rule      *rule.Rule
	namespace string
}

// A Key is a key in Redis of a rule.
type Key struct {
	Text string
	*account
}

// Parts returns what tells the key from others of its rule, as [rule.Key.String] returns it.
func (k Key) Parts() string { return string(k.Plan.Parts([]byte(k.Text))) }

// Namespace returns that of the key's limiter.
func (k Key) Namespace() string { return k.namespace }

// Time returns a time in the time zone of the key.
func (k Key) Time(t time.Time) time.Time { return k.Numbers.Period.Time(t.UnixMicro()) }

// Day returns the date at a time in the time zone of the key.
func (k Key) Day(at int64) time.Time {
	year, month, day := k.Numbers.Period.Time(at).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// Bounds returns when a day begins and ends in the time zone of the key, of which it is handed the date.
func (k Key) Bounds(date time.Time) (start, end time.Time) {
	p := k.Numbers.Period
	day, err := calendar.Load(spec.Day, p.Zone, 0)
	if err != nil {
		return date, date.AddDate(0, 0, 1)
	}
	noon := time.Date(date.Year(), date.Month(), date.Day(), 12, 0, 0, 0, p.Time(0).Location())
	b := day.At(noon.UnixMicro())
	return p.Time(b.Begin), p.Time(b.End)
}

// Add adds the plan of a rule with a ledger, by which its keys are found, and has its charges told. A
// key is billed once: if a rule of another name has the same keys, Add returns that, to which they
// are billed.
func (as *Accounts) Add(p *plan.Plan, namespace string) (other string) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := &account{Plan: p, namespace: namespace}
	for _, first := range as.accounts.All() {
		if first.Start == p.Start && first.Numbers.Tag() == p.Numbers.Tag() && first.Name != p.Name {
			a, other = first, first.Name
			break
		}
	}
	p.Charged = func(key []byte) { as.note(a, key) }
	if other == "" && as.accounts.Keep(about{p.Declared, namespace}, a) && as.made.IsZero() {
		as.made = time.Now()
	}
	return other
}

// note notes that a key may have been charged.
func (as *Accounts) note(a *account, key []byte) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if as.opened == 0 {
		return
	}
	if _, has := as.keys[string(key)]; has {
		return
	}
	if len(as.keys) >= most {
		as.over = true
		return
	}
	as.keys[string(key)] = a
}

// Open has the accounts remember keys, until close is called. Who opens it reads it about every so often.
func (as *Accounts) Open(every time.Duration) (close func()) {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.every = every
	as.opened++
	if as.keys == nil {
		as.keys = make(map[string]*account)
	}
	return sync.OnceFunc(func() {
		as.mu.Lock()
		defer as.mu.Unlock()
		as.opened--
		if as.opened == 0 {
			as.keys, as.over = nil, false
		}
	})
}

// Charged returns the keys that were charged since the last time, in order, and whether there were
// more. What is not exported is to be noted [Accounts.Again].
func (as *Accounts) Charged() (keys []Key, more bool) {
	as.mu.Lock()
	charged, over := as.keys, as.over
	as.over = false
	if len(charged) > 0 {
		as.keys = make(map[string]*account)
	}
	as.mu.Unlock()
	for text, a := range charged {
		keys = append(keys, Key{text, a})
	}
	slices.SortFunc(keys, compare)
	return keys, over
}

func compare(a, b Key) int { return strings.Compare(a.Text, b.Text) }

// Again notes keys again, and that there may be more.
func (as *Accounts) Again(keys []Key, more bool) {
	for _, k := range keys {
		as.note(k.account, []byte(k.Text))
	}
	as.mu.Lock()
	as.over = as.over || more
	as.mu.Unlock()
}

// Exported notes that all that was charged before a time was exported.
func (as *Accounts) Exported(at time.Time) {
	as.mu.Lock()
	as.told = at
	as.mu.Unlock()
}

// Behind reports whether there are rules, and nothing was exported ten times as long as it should be.
func (as *Accounts) Behind() bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	last := as.made
	if as.told.After(last) {
		last = as.told
	}
	return !last.IsZero() && time.Since(last) > 10*cmp.Or(as.every, usualEvery)
}

// Find returns the key of a rule with some parts, and false if there is no rule of that name.
func (as *Accounts) Find(name string, parts []byte) (k Key, ok bool) {
	for of, a := range as.accounts.All() {
		if of.rule.Name == name {
			return Key{string(a.AppendKey(nil, parts)), a}, true
		}
	}
	return k, false
}

// A Name is that of a rule of a namespace.
type Name struct{ Namespace, Rule string }

// Names returns those of all rules.
func (as *Accounts) Names() (names []Name) {
	for of := range as.accounts.All() {
		if n := (Name{of.namespace, of.rule.Name}); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// Scan finds all keys of the rules, and calls tell with some at a time, in order.
func (as *Accounts) Scan(ctx context.Context, tell func([]Key) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var keys []Key
	flush := func() {
		slices.SortFunc(keys, compare)
		if err := tell(keys); err != nil {
			cancel(err)
		}
		keys = keys[:0]
	}
	var groups []server.Group
	for _, a := range as.accounts.All() {
		var tag server.Tag
		tag.Add(a.Tag)
		groups = append(groups, server.Group{Prefix: a.Start, Tag: tag, Found: func(f server.Found) {
			if keys = append(keys, Key{f.Key, a}); len(keys) == found && ctx.Err() == nil {
				flush()
			}
		}})
	}
	err := server.Survey(ctx, as.Client, groups...)
	if err == nil && len(keys) > 0 {
		flush()
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// A Count is what a key has used of a period.
type Count struct {
	Key Key
	terms.Count
}

// Read returns the counts of keys: of the present period, and of those before it that ended after a
// time. The keys that could not be read come back with the error. Those that are billed to a rule of
// another program, see [Accounts.Shared], are left out.
func (as *Accounts) Read(ctx context.Context, keys []Key, since int64) (counts []Count, failed []Key, err error) {
	for part := range slices.Chunk(keys, batch) {
		var own []Key
		for _, k := range part {
			if lost := k.claim(ctx, as.Client); lost != nil {
				failed, err = append(failed, k), lost
			} else if !k.foreign() {
				own = append(own, k)
			}
		}
		if part = own; len(part) == 0 {
			continue
		}
		calls := make([]terms.Call, len(part))
		for i, k := range part {
			c := terms.Charge{}
			k.Charge(&c, []byte(k.Text), 1)
			calls[i].Charges = []terms.Charge{c}
		}
		if lost := as.Store.Peek(ctx, calls); lost != nil {
			failed, err = append(failed, part...), lost
			continue
		}
		for i := range calls {
			if lost := calls[i].Err; lost != nil {
				failed, err = append(failed, part[i]), lost
				continue
			}
			counts = appendCounts(counts, part[i], calls[i].Charges[0].Past, since)
		}
	}
	return counts, failed, err
}

// appendCounts appends the counts of a key that are known.
func appendCounts(counts []Count, k Key, past *terms.Past, since int64) []Count {
	if past == nil {
		return counts
	}
	all := append([]terms.Count{{Begin: past.Begin, End: past.End, Used: past.Used, Entry: past.Entry}}, past.Counts...)
	for i, c := range all {
		if c.Entry.Epoch == 0 || i > 0 && c.End <= since {
			continue
		}
		if c.Begin == 0 {
			c.Begin = k.Numbers.Period.Before(c.End)
		}
		counts = append(counts, Count{Key: k, Count: c})
	}
	return counts
}

// Restore adds to a key's present count what other epochs have used, if it is of an epoch, or there
// is none if that is 0. It reports whether it was, which it is once.
func (as *Accounts) Restore(ctx context.Context, k Key, epoch, used int64) (bool, error) {
	c := terms.Charge{}
	k.Charge(&c, []byte(k.Text), -used)
	c.At = max(epoch, terms.NoEpoch)
	calls := []terms.Call{{Charges: []terms.Charge{c}}}
	if err := as.Store.Renew(ctx, calls); err != nil {
		return false, err
	}
	return calls[0].Err == nil && calls[0].Charges[0].At != 0, calls[0].Err
}
