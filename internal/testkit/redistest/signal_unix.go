//go:build unix

package redistest

import (
	"os"
	"syscall"
)

// The signals go to the process group: a child that the server forked for a
// replica's first copy would otherwise outlive it and write into a directory
// that is being removed.

func signalKill(p *os.Process)     { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
func signalContinue(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGCONT) }

func signalStop(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGSTOP)
	awaitStop(p.Pid)
}
