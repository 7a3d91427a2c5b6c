// Package scratch makes modules for tests to generate and compile in.
package scratch

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Module returns the directory, as of [Dir], of a new module example.com/x that
// requires the module of rategen, whose directory is root.
func Module(t *testing.T, root string) string {
	t.Helper()
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := Dir(t, root)
	mod, sum := read(t, filepath.Join(root, "go.mod")), read(t, filepath.Join(root, "go.sum"))
	Write(t, filepath.Join(dir, "go.mod"), "module example.com/x\n"+Requirements(mod, root))
	Write(t, filepath.Join(dir, "go.sum"), sum)
	return dir
}

// Requirements returns the text of a go.mod with the requirements of
// rategen's, which is in directory root, and of rategen itself.
func Requirements(mod, root string) string {
	var text strings.Builder
	for line := range strings.Lines(mod) {
		if !strings.HasPrefix(line, "module ") && !strings.HasPrefix(line, "tool ") {
			text.WriteString(line)
		}
	}
	text.WriteString("\nrequire github.com/rategen/rategen v0.0.0\n\nreplace github.com/rategen/rategen => " + root + "\n")
	return text.String()
}

// Flags returns a value of GOFLAGS with which a test does not depend on somebody's flags, but compiles
// and links as they ask for: otherwise everything would be compiled twice.
func Flags(flags ...string) string {
	for _, flag := range strings.Fields(os.Getenv("GOFLAGS")) {
		name, _, _ := strings.Cut(flag, "=")
		switch name {
		case "-trimpath", "-gcflags", "-ldflags":
			flags = append(flags, flag)
		}
	}
	return strings.Join(flags, " ")
}

// Write writes a file and the directories above it.
func Write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// claimAge is for how long a directory stays claimed by a process that was
// killed.
const claimAge = 20 * time.Minute

// Dir returns an empty directory that belongs to the test until it ends. Root
// is the directory of rategen's module.
//
// It is the same directory in every run of a test, unless another process uses
// it at the time: the go command takes what it has compiled before from its
// cache only if the path is the same.
func Dir(t *testing.T, root string) string {
	t.Helper()
	key := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", root, os.Getuid(), t.Name()))
	base := filepath.Join(os.TempDir(), fmt.Sprintf("rategen-test-%x", key[:6]))
	if err := os.MkdirAll(base, 0o700); err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(base, "claimed")
	if info, err := os.Stat(lock); err == nil && time.Since(info.ModTime()) > claimAge {
		os.Remove(lock)
	}
	if err := os.Mkdir(lock, 0o700); err != nil {
		return t.TempDir() // another process tests the same
	}
	dir := filepath.Join(base, "x")
	done := make(chan struct{})
	go func() { // until the test ends, however long that takes
		for {
			select {
			case <-done:
				return
			case <-time.After(claimAge / 10):
				os.Chtimes(lock, time.Now(), time.Now())
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		os.RemoveAll(dir)
		os.Remove(lock)
	})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
