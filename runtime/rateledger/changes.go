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
	p, tx, change, err := l.changed(after)
	if err != nil {
		return nil, after, err
	}
	next = after
	// Rows of a transaction that still runs are left for a later query, and so are all rows after it.
	err = p.page(ctx, `0::bigint`, `ledger WHERE tx < pg_snapshot_xmin(pg_current_snapshot())`, tx, change, func(r Row, _ int64, at string) {
		rows, next = append(rows, r), at
	})
	if err != nil {
		return nil, after, fmt.Errorf("rateledger: read changes: %w", err)
	}
	return rows, next, nil
}

// changed returns the sink, which must be Postgres, and the place of a cursor.
func (l *Ledger) changed(after string) (p *Postgres, tx string, change int64, err error) {
	p, ok := l.sink.(*Postgres)
	if !ok {
		return nil, "", 0, fmt.Errorf("rateledger: %T has no changes: open the ledger by Open", l.sink)
	}
	tx, change, err = parseCursor(after)
	return p, tx, change, err
}

// page reads rows of a table behind a place, in order, each with its amount and its cursor.
func (p *Postgres) page(ctx context.Context, amount, table, tx string, change int64, found func(r Row, amount int64, at string)) error {
	rows, err := p.pool.Query(ctx, `SELECT `+amount+`, tx::text || '-' || change, `+readColumns+` FROM `+table+
		` AND (tx, change) > ($1::text::xid8, $2) ORDER BY tx, change LIMIT $3`, tx, change, changesMost)
	if err != nil {
		return err
	}
	var r Row
	var n int64
	var at string
	_, err = pgx.ForEachRow(rows, []any{&n, &at, &r.Namespace, &r.Rule, &r.Key, &r.Begin, &r.End, &r.Epoch, &r.Version, &r.Total, &r.Base, &r.Whole, &r.Max, &r.Day}, func() error {
		r.Begin, r.End = r.Begin.UTC(), r.End.UTC()
		found(r, n, at)
		return nil
	})
	return err
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
