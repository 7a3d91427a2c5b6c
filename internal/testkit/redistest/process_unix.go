//go:build unix && !linux

package redistest

import "syscall"

// sysProcAttr puts the server into a process group of its own. There is no
// parent-death signal here: a test binary that is killed leaves its servers.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func awaitStop(int) {}
