package redistest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
)

func TestMain(m *testing.M) { limittest.Run(m) }

// recorder is a testing.TB on which failing or skipping ends only the
// function that run was given.
type recorder struct {
	testing.TB
	fatal, skip string
}

func (r *recorder) run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skip(args ...any) {
	r.skip = fmt.Sprint(args...)
	runtime.Goexit()
}

func TestRequire(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, test := range []struct {
		server, require string
		skip, fatal     string
	}{
		{skip: "redis-server is not on the PATH: "},
		{require: "1", fatal: "redis-server is not on the PATH"},
		{server: "no-such-server", fatal: "no-such-server"},
	} {
		t.Setenv(envServer, test.server)
		t.Setenv(envRequire, test.require)
		tb := &recorder{TB: t}
		tb.run(func() { Require(tb) })
		if !strings.HasPrefix(tb.skip, test.skip) || (tb.skip == "") != (test.skip == "") ||
			!strings.Contains(tb.fatal, test.fatal) || (tb.fatal == "") != (test.fatal == "") {
			t.Errorf("%+v: skip %q, fatal %q", test, tb.skip, tb.fatal)
		}
	}
}

// TestOrphan kills a test binary and looks whether its server went with it.
func TestOrphan(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a parent-death signal")
	}
	const env = "REDISTEST_ORPHAN"
	if os.Getenv(env) == "1" {
		fmt.Println("addr", Start(t).Addr)
		select {}
	}
	Require(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestOrphan$", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), env+"=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var addr string
	_, err = fmt.Fscanf(out, "addr %s\n", &addr)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, time.Minute, "the orphan's end", func() error {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return nil
		}
		conn.Close()
		return errors.New(addr + " still takes connections")
	})
}
