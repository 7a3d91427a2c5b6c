package adaptive

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// limits are what the cgroups of this process let it use.
type limits struct {
	cpus   float64 // 0: no quota
	memory uint64  // in bytes; 0: no limit
}

// readLimits reads the limits from cgroups of both versions: the least of those
// that the process's group and the groups above it have, as far as they can be
// seen. A system without cgroups has none.
func readLimits(root fs.FS) (limits, error) {
	var l limits
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	groups := string(text)
	if text, err = fs.ReadFile(root, "proc/self/mountinfo"); err != nil {
		return l, err
	}
	mounts := string(text)
	both := directories("", groups, mounts)
	for _, dir := range append(directories("cpu", groups, mounts), both...) {
		if cpus := quota(root, dir); cpus > 0 && (l.cpus == 0 || cpus < l.cpus) {
			l.cpus = cpus
		}
	}
	for _, dir := range append(directories("memory", groups, mounts), both...) {
		if n := memory(root, dir); n > 0 && (l.memory == 0 || n < l.memory) {
			l.memory = n
		}
	}
	return l, nil
}

// directories returns where the limits of a controller are, those of the
// process's group and of the groups above it, according to the contents of
// /proc/self/cgroup and /proc/self/mountinfo. The controller of version 2,
// where one is for all, has no name.
func directories(controller, groups, mounts string) []string {
	group := ""
	for line := range strings.Lines(groups) { // 4:cpu,cpuacct:/group
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && slices.Contains(strings.Split(parts[1], ","), controller) {
			group = parts[2]
		}
	}
	if group == "" {
		return nil
	}
	for line := range strings.Lines(mounts) { // 31 23 0:28 /root /mount rw - cgroup cgroup rw,cpu
		before, after, _ := strings.Cut(strings.TrimSpace(line), " - ")
		from, kind := strings.Fields(before), strings.Fields(after)
		if len(from) < 5 || len(kind) < 3 {
			continue
		}
		v1 := kind[0] == "cgroup" && controller != "" && slices.Contains(strings.Split(kind[2], ","), controller)
		v2 := kind[0] == "cgroup2" && controller == ""
		if !v1 && !v2 {
			continue
		}
		// A container sees its own group as the root, whatever it is told.
		below, ok := strings.CutPrefix(group, strings.TrimSuffix(from[3], "/"))
		if !ok {
			below = ""
		}
		var dirs []string
		for below = path.Join("/", below); ; below = path.Dir(below) {
			dirs = append(dirs, strings.TrimPrefix(path.Join(from[4], below), "/"))
			if below == "/" {
				return dirs
			}
		}
	}
	return nil
}

// quota returns how many processors a group may use, and 0 if that is not said.
func quota(root fs.FS, dir string) float64 {
	words := strings.Fields(read(root, dir, "cpu.max")) // 150000 100000
	if len(words) == 0 {
		words = []string{read(root, dir, "cpu.cfs_quota_us"), read(root, dir, "cpu.cfs_period_us")}
	}
	if len(words) != 2 {
		return 0
	}
	most, err := strconv.ParseFloat(words[0], 64)
	period, err2 := strconv.ParseFloat(words[1], 64)
	if err != nil || err2 != nil || most <= 0 || period <= 0 {
		return 0 // most is "max" or -1 where there is no limit
	}
	return most / period
}

// memory returns how many bytes a group may use, and 0 if that is not said.
func memory(root fs.FS, dir string) uint64 {
	for _, file := range []string{"memory.max", "memory.limit_in_bytes"} {
		// Without a limit it is "max", or the largest multiple of a page.
		if n, err := strconv.ParseUint(read(root, dir, file), 10, 64); err == nil && n < 1<<60 {
			return n
		}
	}
	return 0
}

// read returns what a file says, and nothing if it cannot be read.
func read(root fs.FS, dir, file string) string {
	text, _ := fs.ReadFile(root, path.Join(dir, file))
	return strings.TrimSpace(string(text))
}
