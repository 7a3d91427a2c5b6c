package redistest

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

// sysProcAttr puts the server into a process group of its own, so that a
// Ctrl-C at the terminal ends the test, whose cleanup then ends the server,
// and lets the kernel kill it when the test binary is killed.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitStop returns when the kernel shows the process as stopped: a signal
// is delivered a moment after it was sent, and the server could still answer
// a command in between.
func awaitStop(pid int) {
	for range 1000 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return // it is gone
		}
		// pid (name) state ...: the name may hold blanks and parentheses.
		if i := bytes.LastIndexByte(stat, ')'); bytes.HasPrefix(stat[i+1:], []byte(" T")) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
