package runtime_test

import (
	"errors"
	"testing"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// Nothing at all is no reason to panic.
func TestEmptyCalls(t *testing.T) {
	t.Parallel()
	refusedAs(t, inMemory(runtime.WithProcessCap(nil)), runtime.ErrInvalidLimit, runtime.Limit{}.WithCost(1))
	store := rawstore.Wrap(runtime.NewMemoryStore())
	for _, calls := range [][]rawstore.Call{nil, {}, {{}}, {{}, {Charges: []rawstore.Charge{}}}} {
		ok(t, errors.Join(store.Take(t.Context(), calls), store.Peek(t.Context(), calls)))
	}
	ok(t, errors.Join(store.Settle(t.Context(), nil), store.Reset(t.Context(), nil)))
}
