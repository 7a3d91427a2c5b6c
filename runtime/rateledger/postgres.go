package rateledger

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// schemaVersion is that of the tables, which the comment on the first of them says.
const schemaVersion = "rategen ledger 1"

// columns are those of the tables, in order.
var columns = map[string]string{
	"ledger": `namespace text NOT NULL, rule text NOT NULL, key bytea NOT NULL, ends timestamptz NOT NULL, epoch bigint NOT NULL,
begins timestamptz NOT NULL, version bigint NOT NULL, total bigint NOT NULL, base bigint NOT NULL, whole boolean NOT NULL,
max bigint NOT NULL, day date NOT NULL, seen timestamptz NOT NULL, change bigint NOT NULL, tx xid8 NOT NULL, frozen bigint NOT NULL`,
	"ledger_day": `namespace text NOT NULL, rule text NOT NULL, key bytea NOT NULL, ends timestamptz NOT NULL, epoch bigint NOT NULL,
day date NOT NULL, total bigint NOT NULL`,
	"ledger_delta": `tx xid8 NOT NULL, change bigint NOT NULL, amount bigint NOT NULL, namespace text NOT NULL, rule text NOT NULL, key bytea NOT NULL,
begins timestamptz NOT NULL, ends timestamptz NOT NULL, epoch bigint NOT NULL, version bigint NOT NULL, total bigint NOT NULL, base bigint NOT NULL,
whole boolean NOT NULL, max bigint NOT NULL, day date NOT NULL`,
}

var schema = `CREATE SEQUENCE IF NOT EXISTS ledger_change;
CREATE TABLE IF NOT EXISTS ledger (` + columns["ledger"] + `, PRIMARY KEY (namespace, rule, key, ends, epoch));
CREATE INDEX IF NOT EXISTS ledger_tx ON ledger (tx, change);
CREATE TABLE IF NOT EXISTS ledger_day (` + columns["ledger_day"] + `, PRIMARY KEY (namespace, rule, key, ends, epoch, day),
FOREIGN KEY (namespace, rule, key, ends, epoch) REFERENCES ledger ON DELETE CASCADE);
CREATE TABLE IF NOT EXISTS ledger_delta (` + columns["ledger_delta"] + `, PRIMARY KEY (tx, change));
COMMENT ON TABLE ledger IS '` + schemaVersion + `'`

// A Postgres is a [Sink]. Its tables are in the first schema of the search path.
type Postgres struct{ pool *pgxpool.Pool }

// NewPostgres returns a sink in the tables of a database, see [Open]. It needs PostgreSQL 13.
func NewPostgres(ctx context.Context, pool *pgxpool.Pool) (*Postgres, error) {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('rategen ledger'))`); err != nil {
			return err
		}
		var is *string
		err := tx.QueryRow(ctx, `SELECT coalesce(obj_description(to_regclass('ledger'), 'pg_class'), CASE WHEN to_regclass('ledger') IS NULL THEN NULL ELSE '' END)`).Scan(&is)
		if err != nil {
			return err
		}
		if is == nil {
			_, err = tx.Exec(ctx, schema)
			return err
		}
		if *is != schemaVersion {
			return fmt.Errorf("table ledger is %q and not %q: it is another program's, or of a newer version of this package: update the program, or set another search_path", *is, schemaVersion)
		}
		for _, name := range []string{"ledger", "ledger_day", "ledger_delta"} {
			if err := checkColumns(ctx, tx, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("rateledger: open the ledger: %w", err)
	}
	return &Postgres{pool}, nil
}

// checkColumns returns an error if a table was altered. Columns may have been added that need no value.
func checkColumns(ctx context.Context, tx pgx.Tx, table string) error {
	rows, err := tx.Query(ctx, `SELECT attname || ' ' || format_type(atttypid, -1) FROM pg_attribute
		WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`, table)
	if err != nil {
		return err
	}
	is, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	want := strings.ReplaceAll(strings.ReplaceAll(columns[table], " NOT NULL", ""), "timestamptz", "timestamp with time zone")
	for _, column := range strings.Split(strings.ReplaceAll(want, "\n", " "), ", ") {
		if !slices.Contains(is, strings.TrimSpace(column)) {
			return fmt.Errorf("table %s has no column %q: somebody has altered it: put that back", table, strings.TrimSpace(column))
		}
	}
	return nil
}

// writeSQL writes states. What was used by the end of a day stays when the first state of a later one
// takes its place, which is read first, as a row that the statement has changed is no more. All rows
// are locked in one order.
const writeSQL = `WITH new AS MATERIALIZED (
	SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::timestamptz[], $5::bigint[], $6::timestamptz[], $7::bigint[],
		$8::bigint[], $9::bigint[], $10::boolean[], $11::bigint[], $12::date[])
	AS n (namespace, rule, key, ends, epoch, begins, version, total, base, whole, max, day)
), old AS MATERIALIZED (
	SELECT namespace, rule, key, ends, epoch, l.day, l.total, l.day < n.day AND l.version < n.version AS over
	FROM ledger l JOIN new n USING (namespace, rule, key, ends, epoch)
	ORDER BY namespace, rule, key, ends, epoch FOR UPDATE OF l
), days AS (
	INSERT INTO ledger_day SELECT namespace, rule, key, ends, epoch, day, total FROM old WHERE over
	ON CONFLICT (namespace, rule, key, ends, epoch, day) DO UPDATE SET total = excluded.total RETURNING 1
)
INSERT INTO ledger AS l
SELECT new.*, now(), nextval('ledger_change'), pg_current_xact_id(), 0 FROM new, (SELECT count(*) FROM days) AS before ORDER BY namespace, rule, key, ends, epoch
ON CONFLICT (namespace, rule, key, ends, epoch) DO UPDATE SET version = excluded.version, total = excluded.total,
	base = excluded.base, whole = excluded.whole, max = excluded.max, day = greatest(l.day, excluded.day), seen = excluded.seen,
	change = excluded.change, tx = excluded.tx
WHERE l.version < excluded.version`

// Write implements [Sink], 1,000 rows in a statement.
func (p *Postgres) Write(ctx context.Context, rows []Row) error {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(compareRows(&a, &b), cmp.Compare(b.Version, a.Version)) })
	rows = slices.CompactFunc(rows, func(a, b Row) bool { return compareRows(&a, &b) == 0 })
	for part := range slices.Chunk(rows, 1000) {
		if _, err := p.pool.Exec(ctx, writeSQL, arguments(part)...); err != nil {
			return fmt.Errorf("rateledger: write to table ledger: %w", err)
		}
	}
	return nil
}

// compareRows orders rows by what tells counts apart.
func compareRows(a, b *Row) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Rule, b.Rule), bytes.Compare(a.Key, b.Key), a.End.Compare(b.End), cmp.Compare(a.Epoch, b.Epoch))
}

func arguments(rows []Row) []any {
	return []any{
		column(rows, func(r *Row) string { return r.Namespace }), column(rows, func(r *Row) string { return r.Rule }),
		column(rows, func(r *Row) []byte { return r.Key }), column(rows, func(r *Row) time.Time { return r.End }),
		column(rows, func(r *Row) int64 { return r.Epoch }), column(rows, func(r *Row) time.Time { return r.Begin }),
		column(rows, func(r *Row) int64 { return r.Version }), column(rows, func(r *Row) int64 { return r.Total }),
		column(rows, func(r *Row) int64 { return r.Base }), column(rows, func(r *Row) bool { return r.Whole }),
		column(rows, func(r *Row) int64 { return r.Max }), column(rows, func(r *Row) time.Time { return r.Day }),
	}
}

func column[T any](rows []Row, of func(*Row) T) []T {
	values := make([]T, len(rows))
	for i := range rows {
		values[i] = of(&rows[i])
	}
	return values
}

const (
	readColumns = `namespace, rule, key, begins, ends, epoch, version, total, base, whole, max, day`
	readDays    = `UNION ALL SELECT l.namespace, l.rule, l.key, l.begins, l.ends, l.epoch, 0, d.total, l.base, l.whole, l.max, d.day
	FROM ledger_day d JOIN ledger l USING (namespace, rule, key, ends, epoch)`
	readWhere = ` WHERE l.namespace = $1 AND l.rule = $2 AND ($3::bytea IS NULL OR l.key = $3) AND ($4::timestamptz IS NULL OR l.ends > $4)
	AND ($5::timestamptz IS NULL OR l.begins < $5) AND ($6::bytea IS NULL OR l.key > $6) `
)

// Read implements [Sink].
func (p *Postgres) Read(ctx context.Context, q Query) ([]Row, error) {
	sql := `SELECT ` + readColumns + ` FROM ledger l` + readWhere
	if q.Days {
		sql += readDays + readWhere
	}
	sql += ` ORDER BY key, ends, epoch, day`
	if q.Most > 0 {
		sql += fmt.Sprintf(` FETCH FIRST %d ROWS WITH TIES`, q.Most)
		sql = strings.Replace(sql, `ORDER BY key, ends, epoch, day`, `ORDER BY key`, 1)
	}
	rows, err := p.pool.Query(ctx, sql, q.Namespace, q.Rule, q.Key, orNull(q.From), orNull(q.To), q.After)
	if err == nil {
		var all []Row
		if all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Row]); err == nil {
			return all, nil
		}
	}
	return nil, fmt.Errorf("rateledger: read table ledger: %w", err)
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
