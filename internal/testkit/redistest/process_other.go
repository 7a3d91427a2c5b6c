//go:build !unix

package redistest

import (
	"os"
	"syscall"
)

// Redis does not run here; these let the tests that use it compile and skip.

func sysProcAttr() *syscall.SysProcAttr { return nil }

func signalKill(p *os.Process)   { _ = p.Kill() }
func signalStop(*os.Process)     {}
func signalContinue(*os.Process) {}
