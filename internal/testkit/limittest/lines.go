package limittest

import (
	"bytes"
	"log/slog"
	"sync"

	"github.com/rategen/rategen/runtime"
)

// Lines is a log that may be read while it is written, without the time.
type Lines struct {
	mu  sync.Mutex
	out bytes.Buffer
}

// Write writes to the log.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

// String returns the log.
func (l *Lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// Logger returns a limiter's option that has it write to the log.
func (l *Lines) Logger() runtime.Option { return runtime.WithLogger(l.Slog()) }

// Slog returns a logger that writes to the log.
func (l *Lines) Slog() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}
