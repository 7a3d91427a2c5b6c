package redistest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// loadingStep is for how long a loading server rests before it looks at its
// clients again.
const loadingStep = 10 * time.Millisecond

// RestartLoading starts the server again on the same port, after killing it if
// it runs, with as much to load as takes it about as long as d. It returns when
// the server answers LOADING. The server then comes back empty.
//
// The commands that it loads are not data, since Redis 6.2 looks at its clients
// only once for every 2 MB of that, but a thousand commands of an append-only
// file for each time that it looks at its clients, of which one sleeps.
func (s *Server) RestartLoading(d time.Duration) {
	s.tb.Helper()
	const name = "loading.aof"
	step := command("DEBUG", "SLEEP", fmt.Sprint(loadingStep.Seconds()))
	step = append(step, bytes.Repeat(command("PING"), 999)...)
	commands := bytes.Repeat(step, int(d/loadingStep))
	s.restart(true, func() error {
		if err := os.WriteFile(filepath.Join(filepath.Dir(s.log), name), commands, 0o600); err != nil {
			return err
		}
		s.arg = append(slices.Clip(s.arg), "--appendonly", "yes", "--appendfilename", name)
		return nil
	})
}

// command returns a command as a client sends it.
func command(words ...string) []byte {
	text := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		text = fmt.Appendf(text, "$%d\r\n%s\r\n", len(word), word)
	}
	return text
}

// WaitServing returns when the server answers a PING. It fails the test after
// a minute.
func (s *Server) WaitServing() {
	s.tb.Helper()
	waitFor(s.tb, startLimit, "the server's answer", func() error {
		s.mu.Lock()
		pid := s.proc.cmd.Process.Pid
		s.mu.Unlock()
		return s.probe(pid)
	})
}
