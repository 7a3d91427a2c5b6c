package rateledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// changesMost is how many rows [Ledger.Changes] returns at most.
const changesMost = 1000

// Changes returns rows that were written after a cursor, "" from the beginning, up to 1,000 in the order
// in which they were, and the next cursor. A row that changes again comes again, with a higher Version
// and the Total by then, so a reader may be ended anywhere, and read from its last cursor on: of each
// Key, End and Epoch the row of the highest Version holds. Only ledgers of [Open] have changes.
func (l *Ledger) Changes(ctx context.Context, after string) (rows []Row, next string, err error) {
	p, ok := l.sink.(*Postgres)
	if !ok {
		return nil, after, fmt.Errorf("rateledger: %T has no changes: open the ledger by Open", l.sink)
	}
	tx, change, err := parseCursor(after)
	if err != nil {
		return nil, after, err
	}
	// Rows of a transaction that still runs are left for a later query, and so are all rows after it.
	found, err := p.pool.Query(ctx, `SELECT `+readColumns+`, tx::text || '-' || change FROM ledger
		WHERE (tx, change) > ($1::text::xid8, $2) AND tx < pg_snapshot_xmin(pg_current_snapshot())
		ORDER BY tx, change LIMIT $3`, tx, change, changesMost)
	if err != nil {
		return nil, after, fmt.Errorf("rateledger: read changes: %w", err)
	}
	next = after
	rows, err = pgx.CollectRows(found, func(r pgx.CollectableRow) (n Row, err error) {
		return n, r.Scan(&n.Namespace, &n.Rule, &n.Key, &n.Begin, &n.End, &n.Epoch, &n.Version, &n.Total, &n.Base, &n.Whole, &n.Max, &n.Day, &next)
	})
	if err != nil {
		return nil, after, fmt.Errorf("rateledger: read changes: %w", err)
	}
	return rows, next, nil
}

// parseCursor returns the transaction and the change of a cursor.
func parseCursor(cursor string) (tx string, change int64, err error) {
	if cursor == "" {
		return "0", 0, nil
	}
	tx, number, _ := strings.Cut(cursor, "-")
	change, err = strconv.ParseInt(number, 10, 64)
	if _, bad := strconv.ParseUint(tx, 10, 64); bad != nil || err != nil {
		return "", 0, fmt.Errorf("rateledger: %q is no cursor that Changes has returned", cursor)
	}
	return tx, change, nil
}
