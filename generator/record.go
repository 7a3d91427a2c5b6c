package generator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// A record is kept of a run that found everything up to date, so that the next
// one need not ask the go command as long as nothing has changed. It holds a
// hash of everything that the outcome depends on: the Go files of every
// package that somebody edits, what directories hold, the files that choose
// modules, the settings of the go command, and the generated files. What the
// go command itself takes for unchangeable is left out: the standard library
// of a toolchain, and versions of modules in the module cache.
type record struct {
	Inputs map[string]string // path to hash
	Files  []File
}

// recordAge is for how long a record that nobody uses is kept.
const recordAge = 30 * 24 * time.Hour

// recall returns the result of an earlier run if it holds still.
func (r *run) recall() *Result {
	path := r.recordPath()
	if path == "" {
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var rec record
	if json.Unmarshal(content, &rec) != nil || len(rec.Inputs) == 0 {
		return nil
	}
	var paths []string
	for p := range rec.Inputs {
		paths = append(paths, p)
	}
	var changed atomic.Bool
	inParallel(len(paths), func(i int) {
		if !changed.Load() && hashInput(paths[i]) != rec.Inputs[paths[i]] {
			changed.Store(true)
		}
	})
	if changed.Load() {
		return nil
	}
	return &Result{Files: rec.Files}
}

// remember keeps a record of a run that began at start, if it found everything
// up to date and if its inputs can all be named.
func (r *run) remember(start time.Time, result *Result) {
	path := r.recordPath()
	if path == "" || len(result.Warnings)+len(result.Notes) > 0 ||
		slices.ContainsFunc(result.Files, func(f File) bool { return f.Status != Unchanged }) {
		return
	}
	inputs := r.inputs()
	if len(inputs) == 0 {
		return
	}
	rec := record{Inputs: map[string]string{}, Files: result.Files}
	for p := range inputs {
		// What changed while this run looked, or just before by a coarse
		// clock, may not be what it saw.
		if info, err := os.Stat(p); err == nil && info.ModTime().After(start.Add(-2*time.Second)) {
			return
		}
		rec.Inputs[p] = hashInput(p)
	}
	content, err := json.Marshal(rec)
	if err != nil || os.MkdirAll(filepath.Dir(path), 0o755) != nil {
		return
	}
	// A record that cannot be written is one that is not there.
	output{path: path, content: content}.apply()
	forgetOld(filepath.Dir(path))
}

// recordPath names the record of runs with this configuration and these
// surroundings, or is "" if no record can be kept.
func (r *run) recordPath() string {
	if r.cfg.CacheDir == "" || r.out != nil {
		return ""
	}
	for _, p := range r.cfg.Patterns {
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
	fmt.Fprintf(key, "%q %q %q %q\n", r.cfg.Dir, r.cfg.Patterns, r.cfg.Tags, goEnvFile())
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
		switch {
		case name == "GO111MODULE" && value != "" && value != "on",
			name == "GOFLAGS" && namesFile(value):
			return ""
		case strings.HasPrefix(name, "GO") || strings.HasPrefix(name, "CGO_") || name == "PATH" || name == "HOME" || name == "XDG_CONFIG_HOME":
			fmt.Fprintln(key, v)
		}
	}
	return filepath.Join(r.cfg.CacheDir, hex.EncodeToString(key.Sum(nil))[:32]+".json")
}

// namesFile reports whether build flags name files of their own.
func namesFile(flags string) bool {
	return strings.Contains(flags, "-modfile") || strings.Contains(flags, "-overlay") || strings.Contains(flags, "-toolexec")
}

// inputs returns the files and directories that a run depends on, or nothing
// if they cannot all be named.
func (r *run) inputs() map[string]bool {
	paths := map[string]bool{}
	if env := goEnvFile(); env != "" {
		paths[env] = true
		if content, err := os.ReadFile(env); err == nil && namesFile(string(content)) {
			return nil
		}
	}
	if work := os.Getenv("GOWORK"); filepath.IsAbs(work) {
		paths[work] = true
	}
	for _, p := range r.list.pkgs {
		switch {
		case p.Error != nil || p.Dir == "" && p.ImportPath != "unsafe" && p.ImportPath != "C":
			return nil // it may come to be in a place that is not known yet
		case p.Standard || p.Dir == "":
			continue
		case p.isDownloaded() && !strings.Contains(p.Dir, string(filepath.Separator)+"vendor"+string(filepath.Separator)):
			continue
		case len(p.CgoFiles) > 0:
			return nil // headers count too
		}
		addDirectory(paths, p.Dir)
	}
	if p := r.list.pkgs["internal/goarch"]; p != nil {
		paths[filepath.Join(p.Dir, "..", "..", "..", "VERSION")] = true
	}
	for _, pattern := range r.cfg.Patterns {
		if root, all := strings.CutSuffix(pattern, "..."); all {
			root = filepath.Join(r.cfg.Dir, strings.TrimRight(root, "/."))
			if strings.Contains(root, "...") || !addTree(paths, root) {
				return nil
			}
		}
	}
	return paths
}

// addDirectory adds a directory, its Go files, and the files around it that
// choose modules.
func addDirectory(paths map[string]bool, dir string) {
	if paths[dir] {
		return
	}
	paths[dir] = true
	for _, name := range goFiles(dir) {
		paths[filepath.Join(dir, name)] = true
	}
	for {
		for _, name := range []string{"go.mod", "go.sum", "go.work", "go.work.sum", "vendor/modules.txt"} {
			paths[filepath.Join(dir, name)] = true
		}
		parent := filepath.Dir(dir)
		if parent == dir || paths[filepath.Join(parent, "go.mod")] {
			return
		}
		dir = parent
	}
}

// addTree adds the directories in which a pattern may find packages.
func addTree(paths map[string]bool, root string) bool {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil || !d.IsDir():
			return err
		case path != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "vendor"):
			return fs.SkipDir
		}
		addDirectory(paths, path)
		return nil
	})
	return err == nil
}

// goEnvFile returns the file that go env -w writes.
func goEnvFile() string {
	if file := os.Getenv("GOENV"); file != "" {
		if file == "off" {
			return ""
		}
		return file
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "go", "env")
}

// hashInput hashes a file's content, or which Go files, directories and other
// links a directory holds.
func hashInput(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		entries, dirErr := os.ReadDir(path)
		if dirErr != nil {
			return "none"
		}
		var names strings.Builder
		for _, e := range entries {
			if name := e.Name(); !e.Type().IsRegular() || strings.HasSuffix(name, ".go") || name == "go.mod" {
				fmt.Fprintf(&names, "%q %v\n", name, e.Type())
			}
		}
		content = []byte(names.String())
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

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
