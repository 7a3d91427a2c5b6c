package adaptive_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime/adaptive"
)

// burn keeps n processors busy until stop is called.
func burn(n int) (stop func()) {
	var stopped atomic.Bool
	var wait sync.WaitGroup
	for range n {
		wait.Go(func() {
			for !stopped.Load() {
			}
		})
	}
	return func() { stopped.Store(true); wait.Wait() }
}

// busiest reads the CPU until it is above 0.7, and returns the last reading. Other programs may leave
// this one so little of cpus processors that it never is: then it is returned by how much of that the
// readings come to at best.
func busiest(read func() (float64, error), cpus float64) (float64, error) {
	if _, err := read(); !errors.Is(err, adaptive.ErrNotYet) {
		return 0, fmt.Errorf("first reading: %w", err)
	}
	best := 0.0
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		begin, before := time.Now(), processorTime()
		time.Sleep(300 * time.Millisecond)
		used, err := read()
		if used > 0.7 || err != nil {
			return used, err
		}
		if had := processorTime() - before; had > 0.05 {
			best = max(best, min(1, used/(had/time.Since(begin).Seconds()/cpus)))
		}
	}
	return best, nil
}

// processorTime returns how many seconds of processors this process has had, by the account of Linux, or 0.
func processorTime() float64 {
	text, _ := os.ReadFile("/proc/self/stat")
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64) // in hundredths
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100
}

// TestCPU has the process use all processors that it can get.
func TestCPU(t *testing.T) {
	defer burn(goruntime.GOMAXPROCS(0))()
	read, own := adaptive.NewCPU()
	if used, err := busiest(read, float64(goruntime.GOMAXPROCS(0))); err != nil || used <= 0.7 || used > 1.5 {
		t.Errorf("reading %v, %v", used, err)
	}
	before := own()
	for end := time.Now().Add(time.Minute); own() < before+0.1; time.Sleep(10 * time.Millisecond) {
		if _, err := read(); err != nil || time.Now().After(end) {
			t.Fatalf("used %v seconds of CPU, then %v (%v)", before, own(), err)
		}
	}
}

func TestMemory(t *testing.T) {
	if used, err := adaptive.NewMemory()(); err != nil || used <= 0 || used >= 1 {
		t.Errorf("reading %v, %v", used, err)
	}
}

// inCgroup is the variable of the environment that has TestInCgroup speak of
// the cgroup it runs in.
const inCgroup = "RATEGEN_TEST_IN_CGROUP"

// TestInCgroup runs itself in a cgroup that may use half a processor and 512
// MB, and uses them up.
func TestInCgroup(t *testing.T) {
	if os.Getenv(inCgroup) != "" {
		fmt.Scanln() // until this process is in the cgroup
		defer burn(1)()
		read, _ := adaptive.NewCPU()
		cpu, err := busiest(read, 0.5)
		ballast := make([]byte, 64<<20)
		for i := range ballast {
			ballast[i] = 1
		}
		memory, err2 := adaptive.NewMemory()()
		goruntime.KeepAlive(ballast)
		cpus, bytes, err3 := adaptive.Limits(adaptive.Root)
		fmt.Println("reading:", cpus, bytes, cpu, memory, errors.Join(err, err2, err3))
		return
	}
	if !effort.Full() {
		t.Skip("uses a processor for seconds: in a full run only")
	}
	groups := newCgroups(t)
	child := exec.Command(os.Args[0], "-test.run=^TestInCgroup$")
	child.Env = append(os.Environ(), inCgroup+"=1")
	stdin, err := child.StdinPipe()
	limittest.OK(t, err)
	var out strings.Builder
	child.Stdout, child.Stderr = &out, &out
	limittest.OK(t, child.Start())
	for _, dir := range groups {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(child.Process.Pid)), 0); err != nil {
			child.Process.Kill()
			child.Wait()
			t.Skip("processes cannot be put into a cgroup: ", err)
		}
	}
	fmt.Fprintln(stdin)
	if err := child.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	var cpus, cpu, memory float64
	var bytes uint64
	var problem string
	_, line, _ := strings.Cut(out.String(), "reading: ")
	if _, err := fmt.Sscan(line, &cpus, &bytes, &cpu, &memory, &problem); err != nil || problem != "<nil>" {
		t.Fatalf("%v\n%s", err, &out)
	}
	if cpus != 0.5 || bytes != 512<<20 {
		t.Errorf("limits of %v processors and %d bytes", cpus, bytes)
	}
	if cpu < 0.7 || cpu > 1.8 || memory < 0.12 || memory > 0.9 {
		t.Errorf("readings %v and %v, want about 1 and 64 MB of 512 MB and a bit more", cpu, memory)
	}
}

// newCgroups makes the cgroups, of whichever version there is, and skips the
// test where it may not.
func newCgroups(t *testing.T) []string {
	const base = "/sys/fs/cgroup"
	name := fmt.Sprintf("rategen-test-%d", os.Getpid())
	type limit struct{ dir, file, text string }
	limits := []limit{
		{base, "cpu.max", "50000 100000"},
		{base, "memory.max", "536870912"},
	}
	if _, err := os.Stat(filepath.Join(base, "cgroup.controllers")); err != nil {
		limits = []limit{
			{base + "/cpu", "cpu.cfs_quota_us", "50000"},
			{base + "/memory", "memory.limit_in_bytes", "536870912"},
		}
	}
	var dirs []string
	for _, l := range limits {
		dir := filepath.Join(l.dir, name)
		if err := os.Mkdir(dir, 0o755); err == nil {
			t.Cleanup(func() { os.Remove(dir) })
			dirs = append(dirs, dir)
		} else if !errors.Is(err, os.ErrExist) {
			t.Skip("cgroups cannot be made: ", err)
		}
		if err := os.WriteFile(filepath.Join(dir, l.file), []byte(l.text), 0); err != nil {
			t.Skip("cgroups cannot be limited: ", err)
		}
	}
	return dirs
}
