package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// pinned is set for a program that runs on the cores it was asked to.
const pinned = "RATEGEN_BENCH_PINNED"

// pin has this program, and the redis-server that it will start, run on the
// first n of the cores that it may use, together. It does so by starting itself
// anew and returns only if that has happened or cannot be.
func pin(n int) error {
	runtime.GOMAXPROCS(n)
	if os.Getenv(pinned) != "" {
		return nil
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	cores, err := allowed(string(status))
	if err != nil {
		return err
	}
	if n > len(cores) {
		return fmt.Errorf("there are %d cores", len(cores))
	}
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := append([]string{taskset, "-c", strings.Join(cores[:n], ","), self}, os.Args[1:]...)
	return syscall.Exec(taskset, args, append(os.Environ(), pinned+"=yes"))
}

// allowed returns which cores a process may use, from its /proc status.
func allowed(status string) ([]string, error) {
	for line := range strings.Lines(status) {
		list, ok := strings.CutPrefix(line, "Cpus_allowed_list:")
		if !ok {
			continue
		}
		var cores []string
		for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
			from, to, ranged := strings.Cut(part, "-")
			if !ranged {
				to = from
			}
			first, err1 := strconv.Atoi(from)
			last, err2 := strconv.Atoi(to)
			if err := errors.Join(err1, err2); err != nil {
				return nil, err
			}
			for core := first; core <= last; core++ {
				cores = append(cores, strconv.Itoa(core))
			}
		}
		return cores, nil
	}
	return nil, errors.New("no list of the cores that may be used")
}
