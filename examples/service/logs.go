package main

import (
	"bytes"
	"io"
	"sync/atomic"
)

// A lineCounter indents the lines of a log and counts them.
type lineCounter struct {
	w     io.Writer
	lines atomic.Int64
}

// Write implements io.Writer. slog writes a whole line at a time.
func (l *lineCounter) Write(p []byte) (int, error) {
	l.lines.Add(int64(bytes.Count(p, []byte{'\n'})))
	if _, err := l.w.Write(append([]byte("   log: "), p...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Lines returns how many lines were written so far.
func (l *lineCounter) Lines() int64 { return l.lines.Load() }
