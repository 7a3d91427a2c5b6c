//go:build unix

// Package pgtest starts a Postgres for tests, on a socket in a directory of its own.
package pgtest

import (
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
)

// A Server is a Postgres that was started.
type Server struct {
	dir, bin  string
	attr      *syscall.SysProcAttr
	databases atomic.Int64
}

// ErrNone says that no Postgres is installed.
var ErrNone = errors.New("no initdb in /usr/lib/postgresql/*/bin: install postgresql")

var shared = sync.OnceValues(Launch)

// Main runs the tests of a package that call [Database].
func Main(m *testing.M) {
	code := m.Run()
	if s, err := shared(); err == nil {
		s.Stop()
	}
	os.Exit(code)
}

// Database returns the URL of an empty database, on a server that all tests of a package share. Without
// Postgres it skips the test, or fails it when RATEGEN_REQUIRE_POSTGRES=1.
func Database(t testing.TB) (url string) {
	t.Helper()
	s, err := shared()
	if errors.Is(err, ErrNone) && os.Getenv("RATEGEN_REQUIRE_POSTGRES") != "1" {
		t.Skip(err)
	}
	if err == nil {
		url, err = s.Database()
	}
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// Launch starts a server, by a user of its own if this one is root, as whom it does not run.
func Launch() (s *Server, err error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		return nil, ErrNone
	}
	s = &Server{bin: found[len(found)-1]}
	if s.dir, err = os.MkdirTemp("/tmp", "pgtest"); err != nil {
		return nil, err
	}
	if os.Getuid() == 0 {
		err = s.disown()
	}
	if err == nil {
		err = s.run("initdb", "-D", "data", "-U", "rategen", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
	}
	options := []string{"listen_addresses=", "unix_socket_directories=" + s.dir, "fsync=off", "max_connections=200"}
	if err == nil {
		err = s.run("pg_ctl", "-D", "data", "-l", "log", "-w", "-t", "60", "-o", "-c "+strings.Join(options, " -c "), "start")
	}
	if err != nil {
		s.Stop()
	}
	return s, err
}

// disown has the server run as postgres.
func (s *Server) disown() error {
	owner, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	s.attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return os.Chown(s.dir, uid, gid)
}

// run runs a program of Postgres, which is in the server's directory.
func (s *Server) run(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.attr
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// Database makes an empty database, and returns its URL.
func (s *Server) Database() (url string, err error) {
	name := fmt.Sprintf("test%d", s.databases.Add(1))
	return fmt.Sprintf("postgres://rategen@/%s?host=%s", name, s.dir), s.run("createdb", "-h", s.dir, "-U", "rategen", name)
}

// Stop ends the server, and removes its directory.
func (s *Server) Stop() {
	_ = s.run("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop")
	_ = os.RemoveAll(s.dir)
}
