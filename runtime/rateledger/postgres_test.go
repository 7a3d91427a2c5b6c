package rateledger

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rategen/rategen/internal/testkit/pgtest"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		var c child
		err := json.Unmarshal([]byte(text), &c)
		if err == nil {
			err = c.run()
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

// database returns a pool on an empty database.
func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.Database(t))
	ok(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// newSink returns the tables of an empty database.
func newSink(t *testing.T) *Postgres {
	t.Helper()
	sink, err := NewPostgres(t.Context(), database(t))
	ok(t, err)
	return sink
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTables wants tables that are created once, by any number at a time, and an error that names one
// that was altered, is another program's, or of a newer version.
func TestTables(t *testing.T) {
	pool := database(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := NewPostgres(context.Background(), pool); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for sql, want := range map[string]string{
		"ALTER TABLE ledger ADD mine text":                                "",
		"ALTER TABLE ledger_day RENAME total TO sum":                      `table ledger_day has no column "total bigint"`,
		"ALTER TABLE ledger ALTER total TYPE numeric":                     `table ledger has no column "total bigint"`,
		"DROP TABLE ledger_day":                                           `table ledger_day has no column`,
		"COMMENT ON TABLE ledger IS 'rategen ledger 2'":                   `table ledger is "rategen ledger 2"`,
		"DROP TABLE ledger CASCADE; CREATE TABLE ledger (amount numeric)": `table ledger is ""`,
		"DROP TABLE ledger, ledger_day":                                   "",
		"DROP TABLE ledger, ledger_day; CREATE VIEW ledger AS SELECT 1":   `table ledger is ""`,
	} {
		pool := database(t)
		_, err := NewPostgres(t.Context(), pool)
		ok(t, err)
		_, err = pool.Exec(t.Context(), sql)
		ok(t, err)
		_, err = NewPostgres(t.Context(), pool)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", sql, err, want)
		}
	}
	pool.Close()
	if _, err := NewPostgres(t.Context(), pool); err == nil {
		t.Error("a closed pool opens")
	}
}

// TestLateStates wants the state of the highest version, in whatever order states are written.
func TestLateStates(t *testing.T) {
	p := newSink(t)
	row := Row{Namespace: "n", Rule: "r", Key: []byte("k"), Begin: time.Unix(0, 0).UTC(), End: time.Unix(86400, 0).UTC(), Epoch: 7, Max: 100, Day: time.Unix(0, 0).UTC()}
	for _, version := range []int64{3, 5, 4, 5, 1} {
		row.Version, row.Total = version, 10*version
		ok(t, p.Write(t.Context(), []Row{row}))
	}
	rows, err := p.Read(t.Context(), Query{Namespace: "n", Rule: "r"})
	ok(t, err)
	if len(rows) != 1 || rows[0].Version != 5 || rows[0].Total != 50 {
		t.Errorf("%+v, want the state of version 5 alone", rows)
	}
}
