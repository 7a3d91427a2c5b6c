package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rateledger"
	"github.com/rategen/rategen/runtime/rule"
)

// database connects to Postgres, where the tables of a ledger must be.
func (s *session) database(ctx context.Context) (*pgxpool.Pool, error) {
	named, err := url.Parse(s.postgres)
	if err == nil {
		_, has := named.User.Password()
		if has || named.Query().Has("password") || strings.Contains(s.postgres, "password=") {
			return nil, usagef("-postgres has a password, which every user of this machine can read in the list of processes: take it out, and set PGPASSWORD")
		}
	}
	pool, err := pgxpool.New(ctx, s.postgres)
	if err != nil {
		return nil, usagef("-postgres: write postgres://user@host:5432/database, or leave it out and set PGHOST, PGUSER and PGDATABASE")
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	var is bool
	err = pool.QueryRow(ctx, `SELECT to_regclass('ledger') IS NOT NULL`).Scan(&is)
	if err == nil && is {
		return pool, nil
	}
	pool.Close()
	if err == nil {
		return nil, nothingf("there is no table ledger in this database: name that of rateledger.Open with -postgres, and its schema by ?search_path=")
	}
	return nil, foreign{fmt.Errorf("postgres: %w", err)}
}

type ledgerLine struct {
	Rule    string    `json:"rule"`
	Keys    int64     `json:"keys"`
	Total   int64     `json:"total"`
	Written time.Time `json:"written"`
}

func (l ledgerLine) row() []string {
	return rowOf(l.Rule, l.Keys, l.Total, time.Since(l.Written).Round(time.Second))
}

func (s *session) listLedger(ctx context.Context, _ []string) error {
	pool, err := s.database(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	rows, err := pool.Query(ctx, `SELECT rule, count(DISTINCT key), sum(total)::bigint, max(seen) FROM ledger
		WHERE namespace = $1 AND ends > now() GROUP BY rule ORDER BY rule`, s.Namespace)
	if err != nil {
		return foreign{fmt.Errorf("postgres: %w", err)}
	}
	lines, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ledgerLine])
	if err != nil {
		return foreign{fmt.Errorf("postgres: %w", err)}
	}
	return printEach(&s.printer, "RULE KEYS TOTAL WRITTEN-AGO", lines, ledgerLine.row)
}

func (s *session) restoreLedger(ctx context.Context, _ []string) error {
	rules := slices.DeleteFunc(slices.Clone(s.Rules), func(d operate.Rule) bool { return d.Ledger != rule.LedgerOn })
	if len(rules) == 0 {
		return nothingf("no rule has ledger=on: there is nothing to restore")
	}
	unknown, err := s.ReadBy(ctx, rules)
	if err != nil {
		return err
	}
	for _, d := range rules {
		s.Limiter.Register(d.Rule)
	}
	pool, err := s.database(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	ledger, err := rateledger.Open(ctx, pool, s.Store)
	if err != nil {
		return foreign{err}
	}
	if unknown != "" {
		s.logger().Print(visible(unknown))
	}
	if s.dry {
		s.printf("what Redis has lost of %d rules would be restored; nothing is changed", len(rules))
		return nil
	}
	if err := s.confirm(ctx, "restore what Redis has lost of %d rules", len(rules)); err != nil {
		return err
	}
	restored, err := ledger.Restore(ctx)
	noted := s.Note(ctx, override.Record{Target: override.Target{Rule: override.All}, Who: s.author(), Why: s.why, Did: "ledger restore", Before: fmt.Sprintf("%d counts restored", restored)})
	if err != nil {
		return foreign{err}
	}
	if noted != nil {
		return noted
	}
	if s.json() {
		return s.printJSON(struct {
			Restored int    `json:"restored"`
			Unknown  string `json:"not_known,omitempty"`
		}{restored, unknown})
	}
	s.printf("%s", strings.TrimSuffix(fmt.Sprintf("%d counts restored; %s", restored, unknown), "; "))
	return nil
}
