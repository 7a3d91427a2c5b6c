package rateledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A server is one Postgres for all tests, on a socket in a directory of its own.
type server struct {
	start     sync.Once
	dir       string
	err       error
	stop      func()
	databases atomic.Int64
}

var shared server

var errNoPostgres = errors.New("no initdb in /usr/lib/postgresql/*/bin: install postgresql")

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	os.Exit(code)
}

// database returns a pool on an empty database. Without Postgres it skips the test, or fails it when
// RATEGEN_REQUIRE_POSTGRES=1.
func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	shared.start.Do(func() { shared.err = shared.launch() })
	if errors.Is(shared.err, errNoPostgres) && os.Getenv("RATEGEN_REQUIRE_POSTGRES") != "1" {
		t.Skip(shared.err)
	}
	ok(t, shared.err)
	name := fmt.Sprintf("test%d", shared.databases.Add(1))
	conn, err := pgx.Connect(t.Context(), shared.url("postgres"))
	ok(t, err)
	_, err = conn.Exec(t.Context(), "CREATE DATABASE "+name)
	ok(t, errors.Join(err, conn.Close(t.Context())))
	pool, err := pgxpool.New(t.Context(), shared.url(name))
	ok(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func (s *server) url(database string) string {
	return fmt.Sprintf("host=%s user=rategen dbname=%s", s.dir, database)
}

// launch starts Postgres, by a user of its own if this one is root, as whom it does not run.
func (s *server) launch() (err error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		return errNoPostgres
	}
	bin := found[len(found)-1]
	if s.dir, err = os.MkdirTemp("/tmp", "rateledger"); err != nil {
		return err
	}
	s.stop = func() { os.RemoveAll(s.dir) }
	var attr *syscall.SysProcAttr
	if os.Getuid() == 0 {
		owner, err := user.Lookup("postgres")
		if err != nil {
			return err
		}
		uid, _ := strconv.Atoi(owner.Uid)
		gid, _ := strconv.Atoi(owner.Gid)
		if err := os.Chown(s.dir, uid, gid); err != nil {
			return err
		}
		attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	data := filepath.Join(s.dir, "data")
	run := func(name string, args ...string) error {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr = s.dir, attr
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, out)
		}
		return nil
	}
	log := filepath.Join(s.dir, "log")
	options := []string{"listen_addresses=", "unix_socket_directories=" + s.dir, "fsync=off", "max_connections=200"}
	if err := run("initdb", "-D", data, "-U", "rategen", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"); err != nil {
		return err
	}
	s.stop = func() {
		_ = run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
		os.RemoveAll(s.dir)
	}
	return run("pg_ctl", "-D", data, "-l", log, "-w", "-t", "60", "-o", "-c "+strings.Join(options, " -c "), "start")
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
		"ALTER TABLE ledger ADD mine text":                              "",
		"ALTER TABLE ledger_day RENAME total TO sum":                    `table ledger_day has no column "total bigint"`,
		"ALTER TABLE ledger ALTER total TYPE numeric":                   `table ledger has no column "total bigint"`,
		"DROP TABLE ledger_day":                                         `table ledger_day has no column`,
		"COMMENT ON TABLE ledger IS 'rategen ledger 2'":                 `table ledger is "rategen ledger 2"`,
		"DROP TABLE ledger; CREATE TABLE ledger (amount numeric)":       `table ledger is ""`,
		"DROP TABLE ledger, ledger_day":                                 "",
		"DROP TABLE ledger, ledger_day; CREATE VIEW ledger AS SELECT 1": `table ledger is ""`,
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
	p, err := NewPostgres(t.Context(), database(t))
	ok(t, err)
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
