// Package cache keeps records of runs that found everything up to date. A record
// is recalled only while everything that the outcome depends on is unchanged.
package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/generator/internal/output"
	"github.com/rategen/rategen/generator/internal/parallel"
)

// A Record is kept of a run that found everything up to date, so that the next
// one need not ask the go command as long as nothing has changed. It holds a
// hash of everything that the outcome depends on: the Go files of every
// package that somebody edits, what directories hold, the files that choose
// modules, the settings of the go command, and the generated files. What the
// go command itself takes for unchangeable is left out: the standard library
// of a toolchain, and versions of modules in the module cache.
//
// Its methods do nothing if the record is nil.
type Record struct {
	path     string // of the file that keeps it
	dir      string // in which the run takes place
	patterns []string
}

// recordFile is the content of the file.
type recordFile struct {
	Inputs  map[string]string // path to hash
	Outcome json.RawMessage   // of the run
}

// recordAge is for how long a record that nobody uses is kept.
const recordAge = 30 * 24 * time.Hour

// Open returns the record of runs in dir with these patterns and build
// tags, or nil if none can be kept. An empty cacheDir keeps none.
func Open(cacheDir, dir string, patterns []string, tags string) *Record {
	path := pathOf(cacheDir, dir, patterns, tags)
	if path == "" {
		return nil
	}
	return &Record{path, dir, patterns}
}

// Recall fills in the outcome of an earlier run, as it was kept. It reports
// whether there was one and nothing has changed since.
func (r *Record) Recall(outcome any) bool {
	if r == nil {
		return false
	}
	content, err := os.ReadFile(r.path)
	if err != nil {
		return false
	}
	var rec recordFile
	if json.Unmarshal(content, &rec) != nil || len(rec.Inputs) == 0 {
		return false
	}
	paths := slices.Collect(maps.Keys(rec.Inputs))
	var changed atomic.Bool
	parallel.Do(len(paths), func(i int) {
		if !changed.Load() && hashInput(paths[i]) != rec.Inputs[paths[i]] {
			changed.Store(true)
		}
	})
	return !changed.Load() && json.Unmarshal(rec.Outcome, outcome) == nil
}

// Keep records the outcome of a run that began at start and found its files up
// to date. Its packages were read from the source directories; none means that
// what the run depends on cannot all be named.
func (r *Record) Keep(start time.Time, sources []string, outcome any) {
	if r == nil || len(sources) == 0 {
		return
	}
	inputs := inputsOf(r.dir, r.patterns, sources)
	if len(inputs) == 0 {
		return
	}
	kept, err := json.Marshal(outcome)
	if err != nil {
		return
	}
	rec := recordFile{Inputs: map[string]string{}, Outcome: kept}
	for p := range inputs {
		// A file that changed during this run, or just before by a coarse
		// clock, may not be the one that it saw.
		if info, err := os.Stat(p); err == nil && info.ModTime().After(start.Add(-2*time.Second)) {
			return
		}
		rec.Inputs[p] = hashInput(p)
	}
	content, err := json.Marshal(rec)
	if err != nil || os.MkdirAll(filepath.Dir(r.path), 0o755) != nil {
		return
	}
	// A record that cannot be written is one that is not there.
	output.Apply([]output.File{{Path: r.path, Content: content}})
	forgetOld(filepath.Dir(r.path))
}

// pathOf names the record of runs with a configuration in these surroundings.
// It is "" if none can be kept.
func pathOf(cacheDir, dir string, patterns []string, tags string) string {
	if cacheDir == "" {
		return ""
	}
	for _, p := range patterns {
		if p != "." && !strings.HasPrefix(p, "./") {
			return ""
		}
	}
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	gocmd, err := exec.LookPath("go")
	if err != nil {
		return ""
	}
	key := sha256.New()
	fmt.Fprintf(key, "%q %q %q %q\n", dir, patterns, tags, goEnvFile())
	for _, program := range []string{self, gocmd} {
		info, err := os.Stat(program)
		if err != nil {
			return ""
		}
		fmt.Fprintf(key, "%s %d %d\n", program, info.Size(), info.ModTime().UnixNano())
	}
	env := os.Environ()
	slices.Sort(env)
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		if name == "GO111MODULE" && value != "" && value != "on" || name == "GOFLAGS" && namesFile(value) {
			return ""
		}
		if strings.HasPrefix(name, "GO") || strings.HasPrefix(name, "CGO_") || name == "PATH" || name == "HOME" || name == "XDG_CONFIG_HOME" {
			fmt.Fprintln(key, v)
		}
	}
	return filepath.Join(cacheDir, hex.EncodeToString(key.Sum(nil))[:32]+".json")
}

// namesFile reports whether build flags name files of their own.
func namesFile(flags string) bool {
	return strings.Contains(flags, "-modfile") || strings.Contains(flags, "-overlay") || strings.Contains(flags, "-toolexec")
}

// forgetOld removes the records that nobody has used for long.
func forgetOld(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && filepath.Ext(e.Name()) == ".json" && time.Since(info.ModTime()) > recordAge {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
