package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	startLimit = time.Minute // guards against a hang
	startPoll  = 2 * time.Millisecond
)

var (
	errAddrInUse = errors.New("address already in use")
	errLoading   = errors.New("the server is loading")
)

// process is a started redis-server.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone and reaped
	err  error         // why it went; read it after done
}

// spawn starts cmd and watches it until it ends.
//
// Linux kills the child of a killed test binary (see sysProcAttr), but its
// notion of a parent is the thread that forked: were that thread to end, the
// server would die in the middle of a test. So one goroutine, locked to its
// thread, both starts the process and waits for it, and the thread lives
// exactly as long as the server.
func spawn(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process and returns when it is gone. SIGKILL works on a
// stopped process too.
func (p *process) kill() {
	if p.exited() {
		return
	}
	signalKill(p.cmd.Process)
	<-p.done
}

func (p *process) pause()  { signalStop(p.cmd.Process) }
func (p *process) resume() { signalContinue(p.cmd.Process) }

// launch starts the server's process and returns when it serves, or is loading if
// that is wanted. The error of one that does not is errAddrInUse or ends with what
// the server logged.
func (s *Server) launch(loading bool) (*process, error) {
	// The server appends to the same file itself; this catches what it says
	// before it has read its configuration, or when it rejects it.
	output, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	before, err := output.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}

	cmd := exec.Command(s.bin, s.arg...)
	cmd.Dir = filepath.Dir(s.log)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = sysProcAttr()
	p, err := spawn(cmd)
	if err != nil {
		return nil, err
	}

	poll := time.NewTicker(startPoll)
	defer poll.Stop()
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	for {
		cause := s.probe(cmd.Process.Pid)
		if cause == nil || loading && errors.Is(cause, errLoading) {
			return p, nil
		}
		select {
		case <-poll.C:
			continue
		case <-p.done:
			cause = p.err
		case <-limit.C:
			p.kill()
			cause = fmt.Errorf("no answer within %v: %w", startLimit, cause)
		}
		said, _ := io.ReadAll(io.NewSectionReader(output, before, 1<<20))
		if bytes.Contains(said, []byte("Address already in use")) {
			return nil, fmt.Errorf("%s: %w", s.Addr, errAddrInUse)
		}
		if tail := 2000; len(said) > tail {
			said = said[len(said)-tail:]
		}
		return nil, fmt.Errorf("%s: %v; the end of its log:\n%s", s.Addr, cause, said)
	}
}

// probe asks the server once whether it serves. An answer counts only from
// the process pid: on a port that was taken a moment ago a stranger answers.
func (s *Server) probe(pid int) error {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, "PING\r\nINFO server\r\n"); err != nil {
		return err
	}
	reader := bufio.NewReader(conn)
	for _, want := range []string{"+PONG", "process_id:" + strconv.Itoa(pid)} {
		for {
			line, err := reader.ReadString('\n')
			if err != nil {
				return fmt.Errorf("no %s in the answer: %w", want, err)
			}
			line = strings.TrimRight(line, "\r\n")
			if line == want {
				break
			}
			if strings.HasPrefix(line, "-LOADING") {
				return errLoading
			}
			if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "process_id:") {
				return fmt.Errorf("%s where %s was wanted", line, want)
			}
		}
	}
	return nil
}
