package runtime_test

import (
	"syscall"
	"time"
	"unsafe"
)

// sinceBoot returns a time that all processes of this machine share and that
// nobody sets.
func sinceBoot() time.Duration {
	const monotonic = 1
	var at syscall.Timespec
	if _, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&at)), 0); err != 0 {
		panic(err)
	}
	return time.Duration(at.Nano())
}
