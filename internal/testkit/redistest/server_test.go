package redistest

import (
	"context"
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
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { limittest.Run(m) }

// impatient makes a client fail within a fraction of a second.
func impatient(o *redis.Options) {
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.DialTimeout = 200 * time.Millisecond
	o.ReadTimeout = 200 * time.Millisecond
}

func TestServer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	begin := time.Now()
	s := Start(t)
	t.Logf("started in %v", time.Since(begin))
	client := s.Client(t, impatient)

	if err := client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}

	s.Pause()
	s.Pause()
	if err := client.Get(ctx, "k").Err(); !isTimeout(err) {
		t.Errorf("paused: got %v, want a timeout", err)
	}
	s.Resume()
	s.Resume()
	got, err := client.Get(ctx, "k").Result()
	for range 50 { // on a busy machine its time may be over before it is answered
		if !isTimeout(err) {
			break
		}
		got, err = client.Get(ctx, "k").Result()
	}
	if got != "v" {
		t.Errorf("resumed: got %q, %v", got, err)
	}

	s.Kill()
	s.Kill()
	s.Pause()
	s.Resume()
	if conn, err := net.Dial("tcp", s.Addr); err == nil {
		conn.Close()
		t.Error("killed: the port still takes connections")
	}
	if err := client.Ping(ctx).Err(); err == nil {
		t.Error("killed: PING answered")
	}

	for _, before := range []func(){func() {}, s.Kill, s.Pause} {
		before()
		s.Restart()
		if err := s.Client(t).Get(ctx, "k").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("restarted: got %v, want an empty server", err)
		}
	}
	s.Pause() // the cleanup has to end a paused server
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

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

func TestStartFailureShowsLog(t *testing.T) {
	t.Parallel()
	Require(t)
	tb := &recorder{TB: t}
	tb.run(func() {
		start(tb, portPlain, func(string, int) []string { return []string{"--no-such-option", "1"} })
	})
	if !strings.Contains(tb.fatal, "no-such-option") {
		t.Errorf("the failure does not show the log: %q", tb.fatal)
	}
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	s := Start(t)
	stranger := Start(t)
	s.Kill()
	other := &Server{Addr: stranger.Addr, tb: t, bin: s.bin, log: s.log, arg: append(s.arg, "--port", stranger.port())}
	if _, err := other.launch(false); !errors.Is(err, errAddrInUse) {
		t.Errorf("got %v, want %v", err, errAddrInUse)
	}
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
	cmd := exec.Command(os.Args[0], "-test.run=^TestOrphan$", "-test.timeout=1m")
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
	waitFor(t, 5*time.Second, "the orphan's end", func() error {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return nil
		}
		conn.Close()
		return errors.New(addr + " still takes connections")
	})
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		Start(b).Kill()
	}
}
