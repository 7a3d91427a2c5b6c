package adaptive

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	goruntime "runtime"
	"time"

	"github.com/shirou/gopsutil/v4/common"
	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/process"
)

// root is the file system, in which the limits of the process are found.
var root fs.FS = os.DirFS("/")

// here is where to look for this process: not where the environment says that
// the machine's processes are, which may have another by its number.
var here = context.WithValue(context.Background(), common.EnvKey, common.EnvMap{common.HostProcEnvKey: "/proc"})

func self() (*process.Process, error) {
	return process.NewProcessWithContext(here, int32(os.Getpid()))
}

// A cpuMeter reads the used part of the processors since the last reading.
type cpuMeter struct {
	at          time.Time // zero: never
	own         float64   // seconds of this process
	busy, total float64   // seconds of the machine
}

func (m *cpuMeter) read() (float64, error) {
	limits, err := readLimits(root)
	if err != nil {
		return 0, err
	}
	before := *m
	if err := m.look(limits.cpus == 0); err != nil {
		m.at = time.Time{}
		return 0, err
	}
	passed := m.at.Sub(before.at).Seconds()
	if before.at.IsZero() || passed <= 0 {
		return 0, errNotYet
	}
	cpus := float64(goruntime.GOMAXPROCS(0))
	if limits.cpus > 0 {
		cpus = min(cpus, limits.cpus)
	}
	used := (m.own - before.own) / passed / cpus
	if before.total > 0 && m.total > before.total {
		used = max(used, (m.busy-before.busy)/(m.total-before.total))
	}
	return used, nil
}

// look reads the counters, those of the machine if they matter.
func (m *cpuMeter) look(machine bool) error {
	*m = cpuMeter{at: time.Now()}
	p, err := self()
	if err != nil {
		return fmt.Errorf("processor time of this process: %w", err)
	}
	own, err := p.TimesWithContext(here)
	if err != nil {
		return fmt.Errorf("processor time of this process: %w", err)
	}
	m.own = own.User + own.System
	if !machine {
		return nil
	}
	all, err := cpu.Times(false)
	if err != nil || len(all) == 0 {
		return fmt.Errorf("processor time of the machine: %w", err)
	}
	t := all[0]
	m.busy = t.User + t.System + t.Nice + t.Irq + t.Softirq + t.Steal
	m.total = m.busy + t.Idle + t.Iowait
	return nil
}

// A memoryMeter reads the used part of the memory.
type memoryMeter struct{}

func (*memoryMeter) read() (float64, error) {
	limits, err := readLimits(root)
	if err != nil {
		return 0, err
	}
	all, err := mem.VirtualMemory()
	if limits.memory > 0 && (err != nil || limits.memory < all.Total) {
		p, err := self()
		if err != nil {
			return 0, fmt.Errorf("memory of this process: %w", err)
		}
		own, err := p.MemoryInfoWithContext(here)
		if err != nil {
			return 0, fmt.Errorf("memory of this process: %w", err)
		}
		return float64(own.RSS) / float64(limits.memory), nil
	}
	if err != nil {
		return 0, fmt.Errorf("memory of the machine: %w", err)
	}
	return 1 - float64(all.Available)/float64(all.Total), nil
}
