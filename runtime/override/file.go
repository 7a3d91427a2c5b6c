package override

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/report"
)

// File returns a source that reads a file whenever it is asked, so that it sees
// every change: an atomic rename, one in the same moment as the change before,
// the swapped symbolic links of a Kubernetes ConfigMap. A name that ends in
// .json is JSON, one in .yaml or .yml is YAML; any other is JSON if it begins
// with a brace, and YAML otherwise.
//
// A file that is missing or empty is an error, so that nobody switches limits
// on by accident who moves or truncates it. {} overrides nothing. A file of more
// than 16 MiB is an error too. Replace a file by renaming another to its name:
// while one is written in place half of it may be read.
//
// An override that had expired when the file was read is a finding, see [runtime.Limiter.Findings].
func File(path string) runtime.OverrideSource {
	f := &file{path: path}
	f.lines.Loggers, f.lines.Lists = []*slog.Logger{nil}, []*findings.List{&findings.Process}
	return f
}

// String names the file in the reports of processes.
func (f *file) String() string { return "file:" + f.path }

type file struct {
	path string

	mu      sync.Mutex         // several limiters may share the source
	last    *[sha256.Size]byte // of what was last understood
	current reading
	lines   report.Lines
}

// Overrides implements [runtime.OverrideSource].
func (f *file) Overrides(ctx context.Context) (runtime.Overrides, error) {
	if err := ctx.Err(); err != nil {
		return runtime.Overrides{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	data, err := f.read()
	if err != nil {
		return f.current.lastGood(time.Now(), err)
	}
	sum := sha256.Sum256(data)
	if f.last != nil && *f.last == sum {
		return f.current.at(time.Now()), nil
	}
	read, err := parseFile(f.path, data)
	if err != nil {
		return f.current.lastGood(time.Now(), private.InvalidOverrides(private.Errorf("%s: %w", f.path, err)))
	}
	f.last, f.current = &sum, read
	over := read.over(time.Now())
	f.lines.RemoveRules(report.OverrideOver, func(rule string) bool { return !slices.Contains(over, rule) })
	for _, rule := range over {
		f.lines.Find(report.OverrideOver, rule, "")
	}
	return f.current.at(time.Now()), nil
}

func (f *file) read() ([]byte, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, private.Errorf("%w: write {} to it for no overrides", err)
	}
	if !info.Mode().IsRegular() { // to open a pipe may take for ever
		return nil, private.Errorf("%s is not a regular file", f.path)
	}
	opened, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	data, err := io.ReadAll(io.LimitReader(opened, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxBytes {
		return nil, private.InvalidOverrides(private.Errorf("%s has more than %d bytes", f.path, maxBytes))
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil
}

var errEmpty = errors.New("empty: write {} for no overrides")

func parseFile(path string, data []byte) (reading, error) {
	parse, start := parseYAML, bytes.TrimSpace(data)
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json":
		parse = parseJSON
	case ".yaml", ".yml":
	default:
		if bytes.HasPrefix(start, []byte("{")) {
			parse = parseJSON
		}
	}
	if len(start) == 0 {
		return reading{}, errEmpty
	}
	n, err := parse(data)
	if err != nil {
		return reading{}, err
	}
	if n.kind == null {
		return reading{}, errEmpty
	}
	return readingOf(n)
}
