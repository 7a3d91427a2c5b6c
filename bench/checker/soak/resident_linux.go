package main

import (
	"os"
	"strconv"
	"strings"
)

// residentMemory returns how much memory of the machine this process takes, in
// bytes, or 0 if that is unknown.
func residentMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}
