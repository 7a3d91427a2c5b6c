// Package report tells the log and the observers what happens in limiters and stores.
//
// It is handed loggers and lines. It promises that a flood of events is not also a flood
// of lines, and that a handler which panics keeps a line from no other logger and ends
// no call. Callers must keep keys and servers' addresses out of lines.
package report

import (
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/private"
)

// A Log writes lines to several loggers. It is safe for concurrent use.
type Log struct {
	// Loggers are written to; nil is slog.Default as it is at the time of a line.
	Loggers []*slog.Logger
	// Panicked, if not nil, is called with the kind of function of each panic.
	Panicked func(in string)

	panics sync.Map // kind of function -> *Throttle
}

// Alert writes a line that somebody must act on, with its code, to every logger. Skipped is
// how many lines like it were left out.
func (l *Log) Alert(line Line, skipped int64, attrs ...slog.Attr) {
	attrs = append([]slog.Attr{slog.String("code", line.code)}, attrs...)
	if line.help != "" {
		attrs = append(attrs, slog.String("help", line.help))
	}
	l.Write(line.level, line.text, skipped, attrs...)
}

// Write writes a line to every logger. Skipped is how many lines like it were left out.
func (l *Log) Write(level slog.Level, msg string, skipped int64, attrs ...slog.Attr) {
	attrs = withSkipped(attrs, skipped)
	for _, logger := range l.Loggers {
		logger = orDefault(logger)
		if value := write(logger, level, msg, attrs); value != nil {
			l.handlerPanicked(logger, value)
		}
	}
}

// write returns what the logger's handler has panicked with, or nil.
func write(logger *slog.Logger, level slog.Level, msg string, attrs []slog.Attr) (panicked any) {
	defer func() { panicked = recover() }()
	logger.LogAttrs(context.Background(), level, msg, attrs...)
	return nil
}

func withSkipped(attrs []slog.Attr, skipped int64) []slog.Attr {
	if skipped > 0 {
		attrs = append(attrs, slog.Int64("skipped", skipped))
	}
	return attrs
}

func orDefault(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.Default()
	}
	return logger
}

// Panic logs a panic in a kind of function, at most once a second for each kind, and calls
// Panicked.
func (l *Log) Panic(in string, value any) {
	if skipped, ok := l.panicDue(in); ok {
		l.Alert(Panicked, skipped, panicAttrs(in, value)...)
	}
	l.notifyPanic(in)
}

// handlerPanicked logs a panic of a logger's handler to the other loggers, of which the
// default logger is always one.
func (l *Log) handlerPanicked(broken *slog.Logger, value any) {
	const in = "log handler"
	if skipped, ok := l.panicDue(in); ok {
		attrs := withSkipped(panicAttrs(in, value), skipped)
		written := []*slog.Logger{broken}
		for _, logger := range append([]*slog.Logger{nil}, l.Loggers...) {
			if logger = orDefault(logger); !slices.Contains(written, logger) {
				_ = write(logger, Panicked.level, Panicked.text, attrs) // a second panic is not logged
				written = append(written, logger)
			}
		}
	}
	l.notifyPanic(in)
}

func panicAttrs(in string, value any) []slog.Attr {
	return []slog.Attr{slog.String("in", in), slog.String("panic", private.TextOfPanic(value)),
		slog.String("stack", string(debug.Stack()))}
}

// panicDue reports whether a line about a kind of function may be written now.
func (l *Log) panicDue(in string) (skipped int64, ok bool) {
	line, _ := l.panics.LoadOrStore(in, new(Throttle))
	return line.(*Throttle).Due(clock.Now())
}

func (l *Log) notifyPanic(in string) {
	if l.Panicked != nil {
		l.Panicked(in)
	}
}
