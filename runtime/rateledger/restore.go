package rateledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/accounts"
	"github.com/rategen/rategen/runtime/rule"
)

// restoreRows is about how many rows are read at a time to restore counts.
const restoreRows = 2000

// Restore has Redis count again what it has lost of the present periods, to the knowledge of the
// ledger, for the limits of all rules but those of [rule.LedgerHash]. What is in the ledger stays as it
// is, and a count is restored once: it may be called at any time. It returns how many counts it has
// restored. With an error some were not.
func (l *Ledger) Restore(ctx context.Context) (restored int, err error) {
	hashed := false
	for _, name := range l.accounts.Names() {
		k, ok := l.accounts.Find(name.Rule, nil)
		if !ok || k.Rule.Ledger == rule.LedgerHash {
			hashed = hashed || ok
			continue
		}
		q := Query{Namespace: name.Namespace, Rule: name.Rule, From: time.Now(), To: time.Now(), Most: restoreRows}
		for {
			rows, lost := l.sink.Read(ctx, q)
			if lost != nil {
				return restored, errors.Join(err, lost)
			}
			if len(rows) == 0 {
				break
			}
			slices.SortFunc(rows, func(a, b Row) int { return compareRows(&a, &b) })
			for len(rows) > 0 {
				n := 1
				for n < len(rows) && bytes.Equal(rows[n].Key, rows[0].Key) {
					n++
				}
				did, lost := l.restore(ctx, rows[:n])
				err = errors.Join(err, lost)
				if did {
					restored++
				}
				q.After, rows = rows[0].Key, rows[n:]
			}
		}
	}
	if hashed && err == nil && restored == 0 {
		err = errHashed
	}
	return restored, err
}

var errHashed = errors.New("rateledger: rules with ledger=hash cannot be restored: the ledger does not have their keys")

// restore restores the present count of a key by its rows.
func (l *Ledger) restore(ctx context.Context, rows []Row) (bool, error) {
	k, _ := l.accounts.Find(rows[0].Rule, rows[0].Key)
	for range 3 { // the key may be charged meanwhile for the first time
		counts, _, err := l.accounts.Read(ctx, []accounts.Key{k}, 1<<62)
		if err != nil {
			return false, fmt.Errorf("rateledger: restore a count: %w", err)
		}
		epoch, end := int64(0), int64(0)
		if len(counts) > 0 {
			epoch, end = counts[0].Entry.Epoch, counts[0].End
			if counts[0].Entry.Whole {
				return false, nil
			}
		}
		used := lostOf(rows, epoch, end)
		if used <= 0 {
			return false, nil
		}
		if did, err := l.accounts.Restore(ctx, k, epoch, used); did || err != nil {
			return did, err
		}
	}
	return false, nil
}

// lostOf returns what counts of a period beside the count of an epoch, by the rows of all.
func lostOf(rows []Row, epoch, end int64) (used int64) {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Epoch, b.Epoch) })
	for _, r := range rows {
		if r.Epoch == epoch || end != 0 && r.End.UnixMicro() != end {
			continue
		}
		if r.Whole {
			used = 0
		}
		used += r.Total + r.Base
	}
	return used
}
