package script_test

import (
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redisclock"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// TestLedgerAdded adds ledger=on to a rule that keeps counts while processes without it are there: the
// last change of a period is told though one of those begins the next.
func TestLedgerAdded(t *testing.T) {
	t.Parallel()
	db := databases(t).borrow(t)
	store := rawstore.Wrap(db.store)
	without := &runtime.Rule{Name: "r", Algorithm: runtime.FixedWindow, Period: rule.Day, Keep: 3, Max: 100}
	with := *without
	with.Ledger = rule.LedgerOn
	now := time.Date(2100, time.January, 1, 12, 0, 0, 0, time.UTC)
	at := func(later time.Duration, do storetest.Operation, r *runtime.Rule) rawstore.Charge {
		t.Helper()
		now = now.Add(later)
		ok(t, redisclock.Set(t.Context(), db.client, now.UnixMicro(), "k"))
		calls := storetest.Single(r, "k", 1)
		ok(t, do(store, t.Context(), calls))
		ok(t, calls[0].Err)
		return calls[0].Charges[0]
	}
	at(0, storetest.Take, without)
	at(24*time.Hour, storetest.Take, without)
	at(time.Second, storetest.Take, &with)
	at(2*time.Minute, storetest.Take, &with)
	db.client.Persist(t.Context(), "k")
	at(2*time.Minute, storetest.Take, &with)
	if left := db.client.PTTL(t.Context(), "k").Val(); left <= 0 {
		t.Errorf("the key lives for ever, %v", left)
	}
	at(time.Second, storetest.Take, &with)
	last := at(0, storetest.Peek, &with).Past.Entry
	at(24*time.Hour, storetest.Take, without)
	past := at(0, storetest.Peek, &with).Past
	if len(past.Counts) != 2 || past.Counts[0].Used != 5 || past.Counts[0].Entry != last || last.Version != now.Add(-24*time.Hour).UnixMicro() {
		t.Errorf("%+v, want the count of yesterday as of %+v", past, last)
	}
}
