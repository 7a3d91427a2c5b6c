// Package rawstore asks stores without a limiter, in the words of rules. It is for the
// tests and benchmarks of this project: what it does may change with every release.
package rawstore

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Charge is a charge to a limit of a rule. Tests say by it in the words of rules what
// they ask of a store.
type Charge struct {
	Rule     *runtime.Rule
	Key      []byte
	Max      int64
	Cost     int64
	Settled  int64 // what Settle makes of Cost
	Wait     time.Duration
	Process  int64 // whose call waits for permits, or 0; Held is how many it has
	Held     int64
	Deferred bool                // beside a queue: it is made at the call's turn
	Reached  func(terms.Reached) // hears of shares of a rule with a Period, or is nil
	terms.Tenancy

	terms.Result
	Err error
}

// A Call is charges that are made together.
type Call struct {
	Charges []Charge
	Err     error
}

// A Store is a store that is asked in the words of rules.
type Store struct{ terms.Store }

// Wrap returns a store that can be asked in the words of rules.
func Wrap(s runtime.Store) Store { return Store{bridge.EngineOf(s).(terms.Store)} }

// New returns a store that has an engine decide its calls. Its clock, listeners and servers are
// those of the store behind it, or nil.
func New(engine terms.Store, behind runtime.Store) runtime.Store {
	return bridge.NewStore(engine, behind, false).(runtime.Store)
}

// Shared is [New] for an engine that limiters lease from, as if other processes shared it.
func Shared(engine terms.Store, behind runtime.Store) runtime.Store {
	return bridge.NewStore(engine, behind, true).(runtime.Store)
}

// A Result is what a store has found about a charge.
type Result = terms.Result

// Take decides calls.
func (s Store) Take(ctx context.Context, calls []Call) error {
	return execute(calls, func(c []terms.Call) error { return s.Store.Take(ctx, c) })
}

// Peek says what Take would decide.
func (s Store) Peek(ctx context.Context, calls []Call) error {
	return execute(calls, func(c []terms.Call) error { return s.Store.Peek(ctx, c) })
}

// Renew renews permits.
func (s Store) Renew(ctx context.Context, calls []Call) error {
	return execute(calls, func(c []terms.Call) error { return s.Store.Renew(ctx, c) })
}

// Settle settles charges. The error is also that of any of them.
func (s Store) Settle(ctx context.Context, charges []Charge) error {
	plain := make([]terms.Charge, len(charges))
	for i := range charges {
		plain[i] = charges[i].Engine()
		plain[i].Charged, plain[i].Cost = charges[i].Cost, charges[i].Settled-charges[i].Cost
	}
	if err := s.Store.Settle(ctx, plain); err != nil {
		return err
	}
	return terms.Errors(plain)
}

// Hold blocks keys for the Wait of each charge.
func (s Store) Hold(ctx context.Context, charges []Charge) error {
	plain := make([]terms.Charge, len(charges))
	for i := range charges {
		plain[i] = charges[i].Engine()
		plain[i].At = charges[i].Wait.Microseconds()
	}
	if err := s.Store.Hold(ctx, plain); err != nil {
		return err
	}
	return terms.Errors(plain)
}

// Reset forgets keys.
func (s Store) Reset(ctx context.Context, charges []Charge) error {
	plain := make([]terms.Charge, len(charges))
	for i := range charges {
		plain[i] = charges[i].Engine()
	}
	return s.Store.Reset(ctx, plain)
}

// execute calls do with calls of the engine, and copies the results.
func execute(calls []Call, do func([]terms.Call) error) error {
	plain := make([]terms.Call, len(calls))
	for i := range calls {
		plain[i].Err = calls[i].Err
		for j := range calls[i].Charges {
			plain[i].Charges = append(plain[i].Charges, calls[i].Charges[j].Engine())
		}
	}
	err := do(plain)
	for i := range calls {
		calls[i].Err = plain[i].Err
		for j := range calls[i].Charges {
			calls[i].Charges[j].Result, calls[i].Charges[j].Err = plain[i].Charges[j].Result, plain[i].Charges[j].Err
		}
	}
	return err
}

// Engine returns the charge in the engine's terms.
func (c *Charge) Engine() terms.Charge {
	plain := found(c.Rule, max(1, c.Max))
	plain.Key, plain.Cost, plain.Wait, plain.At, plain.Mark = c.Key, c.Cost, c.Wait, c.At, c.Mark
	plain.Deferred, plain.Tenancy = c.Deferred, c.Tenancy
	if plain.Is(algorithm.Queues) {
		plain.More = c.Wait.Microseconds()
	}
	if plain.Algorithm.Is(algorithm.Lends) {
		plain.Param, plain.More = c.Process, c.Held
	}
	if c.Reached != nil && plain.Period != nil {
		plain.Label, plain.Tells = &terms.Label{Reached: c.Reached}, c.Max
	}
	return plain
}

// known are the terms of rules and maxima.
var known sync.Map

// found returns a charge by the terms that a limiter finds for a rule and a max of it.
func found(rule *runtime.Rule, max int64) terms.Charge {
	type key struct {
		runtime.Rule
		max int64
	}
	of := key{*rule, max}
	if known, ok := known.Load(of); ok {
		return known.(terms.Charge)
	}
	if of.Prefix == "" && of.Name == "" {
		of.Prefix = "rawstore:"
	}
	asked := new(asked)
	limiter := runtime.New(New(asked, nil), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	limit := of.Rule.Limit(nil).WithMax(max)
	if of.Headroom != 0 {
		limit = limit.WithShare(nil, 1)
	}
	if _, err := limiter.Take(context.Background(), limit); err != nil || asked.charge.Cost == 0 {
		panic(fmt.Sprintf("rawstore: %+v with a max of %d: %v", of.Rule, max, err))
	}
	c := asked.charge
	c.Key, c.Tenancy = nil, terms.Tenancy{}
	known.Store(key{*rule, max}, c)
	return c
}

// An asked store admits what it is asked, and keeps it.
type asked struct {
	terms.Store
	charge terms.Charge
}

func (a *asked) Take(_ context.Context, calls []terms.Call) error {
	a.charge = calls[0].Charges[0]
	calls[0].Charges[0].Allowed = true
	return nil
}

// Changed returns a store that counts the calls of rules by others, which it finds by their names.
// A limiter takes leases of it.
func Changed(s *runtime.RedisStore, rules map[string]*runtime.Rule) runtime.Store {
	return Shared(changed{Wrap(s).Store, rules}, s)
}

type changed struct {
	terms.Store
	rules map[string]*runtime.Rule
}

// Take decides calls.
func (s changed) Take(ctx context.Context, calls []terms.Call) error {
	changed := slices.Clone(calls)
	for i := range changed {
		changed[i].Charges = slices.Clone(calls[i].Charges)
		for j := range changed[i].Charges {
			c := &changed[i].Charges[j]
			if rule := s.rules[c.Label.Name]; rule != nil {
				plain := found(rule, c.Max)
				c.Terms = plain.Terms
			}
		}
	}
	err := s.Store.Take(ctx, changed)
	for i := range calls {
		calls[i].Copy(&changed[i])
	}
	return err
}
