package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/testkit/scratch"
)

// A module without dependencies: the generated code is not compiled here.
var module = map[string]string{
	"go.mod": "module example.com/m\n\ngo 1.26.0\n",
	"a.go":   "package m\n\ntype A interface {\n\t//ratelimit:key=#id max=5\n\tDo(id string) error\n}\n",
}

// Tests leave the user's cache and settings alone.
func TestMain(m *testing.M) {
	os.Setenv("RATEGEN_CACHE", "off")
	os.Setenv("GOFLAGS", scratch.Flags())
	os.Setenv("GOWORK", "off")
	os.Exit(m.Run())
}

func writeModule(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		scratch.Write(t, filepath.Join(dir, name), content)
	}
	return dir
}

func rategen(dir string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, &out, &errs, dir)
	return code, out.String(), errs.String()
}

// The manual is written by hand; every option must be in it as the generator
// describes it.
func TestManual(t *testing.T) {
	code, out, errs := rategen("", "-h")
	if code != 0 || errs != "" {
		t.Error("-h: exit", code, errs)
	}
	text := strings.Join(strings.Fields(out), " ")
	for _, o := range generator.Options() {
		if !strings.Contains(text, " "+o.Name+"="+o.Value+": ") {
			t.Errorf("the manual does not name the option %s", o.Name)
		}
	}
	for _, flag := range []string{"-check", "-v ", "-json", "-out", "-pkg", "-tags", "-version", "-h"} {
		if !strings.Contains(text, flag) {
			t.Errorf("the manual does not name the flag %s", flag)
		}
	}
	if code, out, _ := rategen("", "-version"); code != 0 || !strings.HasPrefix(out, "rategen ") {
		t.Error("-version:", code, out)
	}
}

// A full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// What cannot be printed is a failure, whatever the command.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := writeModule(t, module)
	for _, args := range []string{"-h", "-version", "-v ./...", "list ./...", "list -json ./...", "list -h", "explain a.go:4", "explain -json a.go:4"} {
		var errs bytes.Buffer
		if code := run(strings.Fields(args), full{}, &errs, dir); code != inputError || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("rategen %s: exit %d, %q", args, code, errs.String())
		}
	}
}
