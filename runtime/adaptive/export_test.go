package adaptive

import "io/fs"

// ErrNotYet is what a reading returns that needs another one.
var ErrNotYet = errNotYet

// Readings is an option that reads the CPU and memory from functions.
func Readings(cpu, memory func() (float64, error)) Option {
	return option(func(s *scaler) {
		s.read = [signals]*gauge{CPU: {name: "cpu", read: cpu}, Memory: {name: "memory", read: memory}}
	})
}

// NewCPU returns a reading of the CPU, and how many seconds of it the process
// had used when it was last read.
func NewCPU() (read func() (float64, error), own func() float64) {
	m := new(cpuMeter)
	return m.read, func() float64 { return m.own }
}

// NewMemory returns a reading of the memory.
func NewMemory() func() (float64, error) { return new(memoryMeter).read }

// Limits reads the limits of cgroups, 0 if there is none.
func Limits(root fs.FS) (cpus float64, memory uint64, err error) {
	l, err := readLimits(root)
	return l.cpus, l.memory, err
}

// Root is the file system of the machine.
var Root = root
