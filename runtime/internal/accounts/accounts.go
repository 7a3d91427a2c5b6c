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
	"sync"
	"sync/atomic"
	"time"

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
