package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rateledger"
	"github.com/rategen/rategen/runtime/rule"
)

// A ledgered command reads the ledger of rules in Postgres.
type ledgered struct {
	changing
	postgres string
}

func (c *ledgered) postgresFlag() cli.Flag {
	return c.sourced(text(&c.postgres, "postgres", "`URL` of the database, without a password, which is in PGPASSWORD (RATECTL_POSTGRES)"))
}

// database connects to Postgres, where the tables of a ledger must be.
func (c *ledgered) database(ctx context.Context) (*pgxpool.Pool, error) {
	named, err := url.Parse(c.postgres)
	if err == nil {
		_, has := named.User.Password()
		if has || named.Query().Has("password") || strings.Contains(c.postgres, "password=") {
			return nil, usagef("-postgres has a password, which every user of this machine can read in the list of processes: take it out, and set PGPASSWORD")
		}
	}
	pool, err := pgxpool.New(ctx, c.postgres)
	if err != nil {
		return nil, usagef("-postgres: write postgres://user@host:5432/database, or leave it out and set PGHOST, PGUSER and PGDATABASE")
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
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

// A ledgerLine is what the ledger has of the present periods of a rule.
type ledgerLine struct {
	Rule    string    `json:"rule"`
	Keys    int64     `json:"keys"`
	Total   int64     `json:"total"`
	Written time.Time `json:"written"`
}

func (l ledgerLine) row() []string {
	return rowOf(l.Rule, l.Keys, l.Total, time.Since(l.Written).Round(time.Second))
}

// A ledgerListCommand says what is in a ledger.
type ledgerListCommand struct{ ledgered }

func (c *ledgerListCommand) about() about {
	return about{
		name: "ledger ls", short: "list what the ledger has of the present periods", needs: prints | mayRedis, flags: []cli.Flag{c.postgresFlag()},
		long: "Lists the rules of the namespace whose usage is in Postgres: how many keys, how much, and how long ago something was written. Processes that are behind say so by ledger_behind, see ratectl doctor.",
	}
}

func (c *ledgerListCommand) run(ctx context.Context, _ []string) error {
	pool, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	rows, err := pool.Query(ctx, `SELECT rule, count(DISTINCT key), sum(total)::bigint, max(seen) FROM ledger
		WHERE namespace = $1 AND ends > now() GROUP BY rule ORDER BY rule`, c.Namespace)
	if err != nil {
		return foreign{fmt.Errorf("postgres: %w", err)}
	}
	lines, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ledgerLine])
	if err != nil {
		return foreign{fmt.Errorf("postgres: %w", err)}
	}
	return printEach(&c.printer, "RULE KEYS TOTAL WRITTEN-AGO", lines, ledgerLine.row)
}

// A ledgerRestoreCommand has Redis count again what it has lost.
type ledgerRestoreCommand struct{ ledgered }

func (c *ledgerRestoreCommand) about() about {
	return about{
		name: "ledger restore", short: "have Redis count again what it has lost", needs: readsRules,
		long: "Has the limits of rules with a ledger count what Postgres has of the present periods and Redis has lost. A count is restored once, so the command may be repeated, and processes may go on meanwhile. Rules with ledger=hash are left out. " +
			"What was charged within some 5 seconds before Redis lost it is in neither. Asks for confirmation.",
		flags: append([]cli.Flag{c.postgresFlag(), c.yesFlag()}, c.tryFlags()...),
	}
}

func (c *ledgerRestoreCommand) run(ctx context.Context, _ []string) error {
	rules := 0
	for _, d := range c.Rules {
		if d.Ledger == rule.LedgerOn {
			c.Limiter.Register(d.Rule)
			rules++
		}
	}
	if rules == 0 {
		return nothingf("no rule has ledger=on: there is nothing to restore")
	}
	pool, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	ledger, err := rateledger.Open(ctx, pool, c.Store)
	if err != nil {
		return foreign{err}
	}
	if c.dry {
		c.printf("what Redis has lost of %d rules would be restored; nothing is changed", rules)
		return nil
	}
	if err := c.confirm(ctx, "restore what Redis has lost of %d rules", rules); err != nil {
		return err
	}
	restored, err := ledger.Restore(ctx)
	noted := c.Note(ctx, override.Record{Target: override.Target{Rule: override.All}, Who: c.author(), Why: c.why, Did: "ledger restore", Before: fmt.Sprintf("%d counts restored", restored)})
	if err != nil {
		return foreign{err}
	}
	if noted != nil {
		return noted
	}
	if c.json() {
		return c.printJSON(map[string]int{"restored": restored})
	}
	c.printf("%d counts restored", restored)
	return nil
}
