// Package storetest has what tests ask of stores, and by which rules.
package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// ChargeOf returns a charge of a cost to a key.
func ChargeOf(rule *runtime.Rule, key string, cost int64) rawstore.Charge {
	return rawstore.Charge{Rule: rule, Key: []byte(key), Max: rule.Max, Cost: cost, Wait: rule.Wait}
}

// Single returns a call of one charge.
func Single(rule *runtime.Rule, key string, cost int64) []rawstore.Call {
	return []rawstore.Call{{Charges: []rawstore.Charge{ChargeOf(rule, key, cost)}}}
}

// An Operation is one of a store.
type Operation func(rawstore.Store, context.Context, []rawstore.Call) error

// The operations on calls.
var (
	Take  Operation = rawstore.Store.Take
	Peek  Operation = rawstore.Store.Peek
	Renew Operation = rawstore.Store.Renew
)

// Try has a store do something with calls, and returns the first one's first charge and
// what any of them failed with.
func Try(store runtime.Store, do Operation, calls []rawstore.Call) (rawstore.Charge, error) {
	err := do(rawstore.Wrap(store), context.Background(), calls)
	for i := range calls {
		err = errors.Join(err, calls[i].Err)
	}
	return calls[0].Charges[0], err
}

// Must is Try, of calls that must be answered.
func Must(t testing.TB, store runtime.Store, do Operation, calls []rawstore.Call) rawstore.Charge {
	t.Helper()
	c, err := Try(store, do, calls)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
