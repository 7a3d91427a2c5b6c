package override

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	limittest.OK(t, os.WriteFile(path, []byte(text), 0o600))
}

func maxOf(n int) string { return fmt.Sprintf("rules: {r: {max: %d}}", n) }

// wantMax fails unless the source says that r has a max of n.
func wantMax(t *testing.T, source runtime.OverrideSource, n int64) {
	t.Helper()
	o, err := look(source)
	if err != nil || o.Rules["r"].Max == nil || *o.Rules["r"].Max != n {
		t.Errorf("got %+v, %v, want a max of %d", o, err, n)
	}
}

// A change is seen however it is made, also when size and time stay the same.
func TestFileChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "limits.yaml")
	at := time.Now().Add(-time.Hour)
	write(t, path, maxOf(1))
	source := File(path)
	wantMax(t, source, 1)
	wantMax(t, source, 1)
	write(t, path, maxOf(2))
	limittest.OK(t, os.Chtimes(path, at, at))
	wantMax(t, source, 2)
	write(t, path, maxOf(3))
	limittest.OK(t, os.Chtimes(path, at, at))
	wantMax(t, source, 3)
	write(t, path+".new", maxOf(4))
	limittest.OK(t, os.Rename(path+".new", path))
	wantMax(t, source, 4)
	write(t, path, "\xef\xbb\xbf"+maxOf(5))
	wantMax(t, source, 5)
}

// Kubernetes changes a ConfigMap by the target of a link to a directory.
func TestFileConfigMap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 2 {
		version := filepath.Join(dir, fmt.Sprintf("..version%d", i+1))
		limittest.OK(t, os.Mkdir(version, 0o700))
		write(t, filepath.Join(version, "limits.yaml"), maxOf(i+1))
	}
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	link("..version1", "..data")
	link(filepath.Join("..data", "limits.yaml"), "limits.yaml")
	source := File(filepath.Join(dir, "limits.yaml"))
	wantMax(t, source, 1)
	link("..version2", "..data_tmp")
	limittest.OK(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	limittest.OK(t, os.RemoveAll(filepath.Join(dir, "..version1")))
	wantMax(t, source, 2)
}

func TestFileErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "limits.json")
	source := File(path)
	if _, err := look(source); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "write {} to it") || errors.Is(err, runtime.ErrInvalidOverrides) {
		t.Errorf("missing: %v", err)
	}
	for text, want := range map[string]string{
		`{"rule": {}}`:    path + `: line 1: unknown field "rule"`,
		``:                path + `: empty: write {} for no overrides`,
		`{"rules": null}`: path + `: line 1: rules is empty: write {"name of a rule": {"max": 10}}, or leave it out`,
		`{"rules": {"` + strings.Repeat("r", maxBytes) + `": {}}}`: path + " has more than 16777216 bytes",
	} {
		write(t, path, text)
		for range 2 {
			if _, err := look(source); !errors.Is(err, runtime.ErrInvalidOverrides) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an invalid file: %q", err, want)
			}
		}
	}
	write(t, path, `{"rules": {"r": {"max": 5}}}`)
	wantMax(t, source, 5)
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := source.Overrides(ended); err != context.Canceled {
		t.Errorf("after the context's end: %v", err)
	}
	limittest.OK(t, os.Remove(path))
	if _, err := look(source); err == nil {
		t.Error("a file that was removed is no error")
	}
	if _, err := look(File(dir)); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
}

// A limiter follows the file within an interval, and keeps what it had while
// the file is wrong.
func TestFileLimiter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "limits.yaml")
	synctest.Test(t, func(t *testing.T) {
		write(t, path, maxOf(2))
		limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)),
			runtime.WithOverrides(File(path), time.Second))
		defer limiter.Close()
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 5}
		for i, step := range []struct {
			text string
			want int64
		}{
			{maxOf(2), 2}, {maxOf(3), 3}, {"rules: {r: {max: -1}}", 3}, {"rules: {r: {max: 4}, s: {mode: x}}", 3}, {"", 3}, {maxOf(4), 4}, {"{}", 5},
		} {
			write(t, path, step.text)
			time.Sleep(time.Second)
			synctest.Wait()
			d, err := limiter.Take(context.Background(), rule.Limit(runtime.NewKey().AddInt(int64(i))))
			if err != nil || d.Limit != step.want {
				t.Errorf("%q: got %+v, %v, want a limit of %d", step.text, d, err, step.want)
			}
		}
	})
}

// Limiters may share a source.
func TestFileShared(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write(t, path, maxOf(1))
	source := File(path)
	var looks sync.WaitGroup
	for range 4 {
		looks.Go(func() {
			for range 50 {
				wantMax(t, source, 1)
			}
		})
	}
	looks.Wait()
}
