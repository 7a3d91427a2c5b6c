package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/rategen/rategen/internal/progress"
)

// A measurement runs the tools in turn, so that what else the machine does
// falls on all of them.
type measurement struct {
	corpus *corpus
	tools  []tool
	runs   int
	cpus   int
	warm   bool // without the case of an empty build cache
	edits  int
	line   *progress.Line
}

// table returns a row of medians for each tool. A case that fails is a dash.
func (m *measurement) table() [][]string {
	var all []string
	for i := range packageCount {
		all = append(all, packageName(i))
	}
	edit := func() error { m.edits++; return m.corpus.writePackage(0, methodsEach+1+m.edits%2) }
	nothing := func() error { return nil }
	rows := make([][]string, len(m.tools))
	memory := make([]string, len(m.tools))
	for n, c := range []struct {
		pkgs       []string
		emptyCache bool
		prepare    func() error
	}{
		{all, false, m.corpus.removeGenerated},
		{all[:1], true, m.corpus.removeGenerated},
		{all, false, edit},
		{all, false, nothing},
	} {
		if c.emptyCache && m.warm {
			for k := range rows {
				rows[k] = append(rows[k], "-")
			}
			continue
		}
		// rategen keeps a record only of files that have not just changed.
		time.Sleep(3 * time.Second)
		times, used, peaks := make([][]time.Duration, len(m.tools)), make([][]time.Duration, len(m.tools)), make([][]int64, len(m.tools))
		for i := range m.runs + 1 {
			for k, t := range m.tools {
				if len(times[k]) > 0 && times[k][0] > 5*time.Second {
					continue // once is enough
				}
				m.line.Steps(n, 4, fmt.Sprintf("run %d of %s", i, t.name))
				took, cpu, peak, err := m.once(t, c.pkgs, c.emptyCache, c.prepare)
				if err != nil {
					log.Printf("%s: %v", t.name, err)
					times[k] = []time.Duration{time.Hour}
					continue
				}
				if i == 0 && took < 5*time.Second {
					continue // a warm-up
				}
				times[k], used[k], peaks[k] = append(times[k], took), append(used[k], cpu), append(peaks[k], peak)
			}
		}
		for k := range m.tools {
			slices.Sort(times[k])
			slices.Sort(used[k])
			slices.Sort(peaks[k])
			cell := "-"
			if took := times[k][len(times[k])/2]; took < time.Hour {
				cell = fmt.Sprintf("%.2fs (%.2f)", took.Seconds(), used[k][len(used[k])/2].Seconds())
			}
			rows[k] = append(rows[k], cell)
			if memory[k] == "" && len(peaks[k]) > 0 {
				memory[k] = fmt.Sprintf("%d MB", peaks[k][len(peaks[k])/2]/1024)
			}
		}
	}
	for k := range rows {
		rows[k] = append(rows[k], memory[k])
	}
	return rows
}

// once runs the tool and returns how long it took, for how long it used a processor, and
// the peak memory of its largest process, in KB.
func (m *measurement) once(t tool, pkgs []string, emptyCache bool, prepare func() error) (took, cpu time.Duration, peak int64, err error) {
	// Each tool has a directory of its own generated files: they would not
	// compile together.
	if err := m.corpus.enter(t.name); err != nil {
		return 0, 0, 0, err
	}
	if err := prepare(); err != nil {
		return 0, 0, 0, err
	}
	if err := t.writeConfig(m.corpus.dir, pkgs); err != nil {
		return 0, 0, 0, err
	}
	env := append(os.Environ(), t.env)
	if emptyCache {
		cache, err := os.MkdirTemp("", "gocache")
		if err != nil {
			return 0, 0, 0, err
		}
		defer os.RemoveAll(cache)
		env = append(env, "GOCACHE="+cache)
	}
	for _, args := range t.calls(pkgs) {
		if taskset, err := exec.LookPath("taskset"); err == nil {
			args = append([]string{taskset, "-c", fmt.Sprintf("0-%d", m.cpus-1)}, args...)
		}
		cmd := m.corpus.command(args[0], args[1:]...)
		cmd.Env = env
		start := time.Now()
		out, err := cmd.CombinedOutput()
		took += time.Since(start)
		if err != nil {
			return 0, 0, 0, fmt.Errorf("%v\n%s", err, out)
		}
		cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			peak = max(peak, usage.Maxrss)
		}
	}
	return took, cpu, peak, nil
}
