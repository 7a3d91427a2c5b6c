package adaptive_test

import (
	"testing"
	"testing/fstest"

	"github.com/rategen/rategen/runtime/adaptive"
)

// What /proc/self/mountinfo says, by version.
const (
	mountV2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	mountV1 = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n" +
		"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	// A container of version 1 sees its own group only.
	mountDocker = "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n" +
		"35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
)

func TestCgroupLimits(t *testing.T) {
	t.Parallel()
	const v1None = "9223372036854771712\n"
	type files map[string]string
	for name, test := range map[string]struct {
		groups, mounts string
		files          files
		cpus           float64
		memory         uint64
	}{
		"container": {"0::/\n", mountV2, files{"cpu.max": "150000 100000\n", "memory.max": "536870912\n"}, 1.5, 512 << 20},
		"no limits": {"0::/\n", mountV2, files{"cpu.max": "max 100000\n", "memory.max": "max\n"}, 0, 0},
		"no files":  {"0::/\n", mountV2, nil, 0, 0},
		"nested": {"0::/a.slice/b.service\n", mountV2, files{
			"a.slice/cpu.max": "200000 100000\n", "a.slice/b.service/cpu.max": "max 100000\n",
			"a.slice/memory.max": "1000\n", "a.slice/b.service/memory.max": "2000\n"}, 2, 1000},
		"nested, own is less": {"0::/a.slice/b.service\n", mountV2, files{
			"a.slice/cpu.max": "200000 100000\n", "a.slice/b.service/cpu.max": "50000 100000\n",
			"a.slice/memory.max": "2000\n", "a.slice/b.service/memory.max": "1000\n"}, 0.5, 1000},
		"another's": {"0::/a\n", mountV2, files{"b/cpu.max": "200000 100000\n", "ab/memory.max": "1000\n"}, 0, 0},
		"outside":   {"0::/../../x\n", mountV2, files{"cpu.max": "200000 100000\n"}, 2, 0},
		"version 1": {"4:memory:/a\n2:cpu,cpuacct:/b\n0::/\n", mountV1, files{
			"cpu,cpuacct/b/cpu.cfs_quota_us": "50000\n", "cpu,cpuacct/b/cpu.cfs_period_us": "100000\n",
			"cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n",
			"memory/a/memory.limit_in_bytes": "4096000\n", "memory/memory.limit_in_bytes": v1None}, 0.5, 4096000},
		"version 1 without": {"4:memory:/\n2:cpu,cpuacct:/\n", mountV1, files{
			"cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n",
			"memory/memory.limit_in_bytes": v1None}, 0, 0},
		"version 1 container": {"4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n", mountDocker, files{
			"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n",
			"memory/memory.limit_in_bytes": "123\n"}, 4, 123},
		"version 1 container told of another group": {"4:memory:/system/x\n2:cpu,cpuacct:/system/x\n", mountDocker, files{
			"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n",
			"memory/memory.limit_in_bytes": "123\n"}, 4, 123},
		"nonsense":       {"x\n::\n0::/\n:::\n", "x - y\n - \n" + mountV2, files{"cpu.max": "a b c\n", "memory.max": "-5\n"}, 0, 0},
		"no quota in it": {"0::/\n", mountV2, files{"cpu.max": "0 0\n", "memory.max": "\n"}, 0, 0},
	} {
		root := fstest.MapFS{
			"proc/self/cgroup":    {Data: []byte(test.groups)},
			"proc/self/mountinfo": {Data: []byte(test.mounts)},
		}
		for file, text := range test.files {
			root["sys/fs/cgroup/"+file] = &fstest.MapFile{Data: []byte(text)}
		}
		cpus, memory, err := adaptive.Limits(root)
		if err != nil || cpus != test.cpus || memory != test.memory {
			t.Errorf("%s: %v processors and %d bytes, want %v and %d (%v)", name, cpus, memory, test.cpus, test.memory, err)
		}
	}
	if cpus, memory, err := adaptive.Limits(fstest.MapFS{}); err != nil || cpus != 0 || memory != 0 {
		t.Errorf("a system without cgroups: %v, %v, %v", cpus, memory, err)
	}
}
