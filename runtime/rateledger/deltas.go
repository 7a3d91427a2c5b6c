package rateledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/rategen/rategen/runtime/internal/keytext"
	"github.com/rategen/rategen/runtime/rule"
)

// A Delta is by how much a count has changed since the delta before: its first Amount is the whole
// Total. The amounts of an epoch add up to the Total of its last delta.
type Delta struct {
	// Row is the state that the count was in by then.
	Row
	// ID names the delta, by 32 hexadecimal digits, however often it is read. So a receiver that takes
	// an ID once charges it once.
	ID string
	// Subject is the Key as text, as [rule.Key.Pattern] returns it, or the hexadecimal digits of its hash.
	Subject string
	// Amount is below 0 where calls were settled for less than they had reserved.
	Amount int64
}

// Time returns when the delta was used: about when its count last changed, and within its period.
func (d *Delta) Time() time.Time { return time.UnixMicro(min(d.Version, d.End.UnixMicro()-1)).UTC() }

// MarshalJSON returns the delta as a CloudEvent of version 1.0 and the type rategen.usage. Its source
// is /rategen/ and the namespace, its data what was used of which period.
func (d Delta) MarshalJSON() ([]byte, error) {
	type data struct {
		Rule    string    `json:"rule"`
		Start   time.Time `json:"start"`
		End     time.Time `json:"end"`
		Amount  int64     `json:"amount"`
		Total   int64     `json:"total"`
		Epoch   int64     `json:"epoch"`
		Version int64     `json:"version"`
	}
	return json.Marshal(struct {
		Spec    string    `json:"specversion"`
		ID      string    `json:"id"`
		Source  string    `json:"source"`
		Type    string    `json:"type"`
		Subject string    `json:"subject,omitempty"`
		Time    time.Time `json:"time"`
		Content string    `json:"datacontenttype"`
		Data    data      `json:"data"`
	}{"1.0", d.ID, "/rategen/" + url.PathEscape(d.Namespace), "rategen.usage", d.Subject, d.Time(), "application/json",
		data{d.Rule, d.Begin, d.End, d.Amount, d.Total, d.Epoch, d.Version}})
}

// Deltas returns what was used since a cursor, "" from the beginning, up to 1,000 deltas in order, and
// the next cursor. What it returns it has written down before, in table ledger_delta: after a crash
// a reader gets the same deltas from its last cursor on. Send them, and then keep the cursor:
//
//	for {
//		deltas, next, err := ledger.Deltas(ctx, cursor)
//		... // send each delta to a receiver that takes its ID once, or return
//		... // keep next, and wait if there were none
//	}
//
// One that was sent may be deleted from the table. Only ledgers of [Open] have deltas.
func (l *Ledger) Deltas(ctx context.Context, after string) (deltas []Delta, next string, err error) {
	p, tx, change, err := l.changed(after)
	if err != nil {
		return nil, after, err
	}
	next = after
	for more := true; more && err == nil && len(deltas) == 0; {
		err = p.page(ctx, `amount`, `ledger_delta WHERE amount <> 0`, tx, change, func(r Row, amount int64, at string) {
			deltas, next = append(deltas, Delta{Row: r, ID: idOf(&r), Subject: l.subjectOf(&r), Amount: amount}), at
		})
		if err == nil && len(deltas) == 0 {
			more, err = p.freeze(ctx)
		}
	}
	if err != nil {
		return nil, after, fmt.Errorf("rateledger: read deltas: %w", err)
	}
	return deltas, next, nil
}

// freezeSQL writes down by how much counts have changed, in the order in which they have. All rows are
// locked in the order of writeSQL. One that has changed once more meanwhile comes again, by 0.
const freezeSQL = `WITH page AS MATERIALIZED (
	SELECT namespace, rule, key, ends, epoch, tx AS at, change AS nth FROM ledger
	WHERE (tx, change) > ($1::text::xid8, $2) AND tx < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY tx, change LIMIT $3
), grown AS MATERIALIZED (
	SELECT * FROM ledger l JOIN page USING (namespace, rule, key, ends, epoch)
	ORDER BY namespace, rule, key, ends, epoch FOR UPDATE OF l
), done AS (
	UPDATE ledger l SET frozen = g.total FROM grown g
	WHERE (l.namespace, l.rule, l.key, l.ends, l.epoch) = (g.namespace, g.rule, g.key, g.ends, g.epoch)
)
INSERT INTO ledger_delta SELECT at, nth, total - frozen, namespace, rule, key, begins, ends, epoch, version, total, base, whole, max, day FROM grown`

// freeze writes down the next deltas, one process at a time, and reports whether there were any.
func (p *Postgres) freeze(ctx context.Context) (some bool, err error) {
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('rategen ledger delta'))`); err != nil {
			return err
		}
		last, change := "0", int64(0)
		err := tx.QueryRow(ctx, `SELECT tx::text, change FROM ledger_delta ORDER BY tx DESC, change DESC LIMIT 1`).Scan(&last, &change)
		if err != nil && err != pgx.ErrNoRows {
			return err
		}
		done, err := tx.Exec(ctx, freezeSQL, last, change, changesMost)
		some = done.RowsAffected() > 0
		return err
	})
	return some, err
}

// idOf returns what names the delta that ends at a state.
func idOf(r *Row) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %d %d", r.Namespace, r.Rule, r.Key, r.End.UnixMicro(), r.Epoch, r.Version))
	return hex.EncodeToString(sum[:16])
}

// subjectOf returns the key of a row as text.
func (l *Ledger) subjectOf(r *Row) string {
	k, ok := l.accounts.Find(r.Rule, nil)
	if ok && k.Rule.Ledger == rule.LedgerHash || !ok && !utf8.Valid(r.Key) {
		return hex.EncodeToString(r.Key)
	}
	return keytext.Pattern{Text: string(r.Key)}.JSON()
}
