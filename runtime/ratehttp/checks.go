package ratehttp

import (
	"log/slog"
	"sync/atomic"

	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/report"
)

// checks reports each check once, to the log and as a finding, and never what a client has sent.
type checks struct {
	lines report.Lines
	done  report.Once

	untrusted atomic.Int64 // requests of peers that are not trusted, with the header of those that are
}

// manyUntrusted is how many such requests are too many, if no other has come: a client can write
// the header itself.
const manyUntrusted = 100

// peer notes whether a request with the header of the trusted proxies came from one.
func (c *checks) peer(trusted bool) {
	if trusted {
		c.done.First(report.UntrustedPeer)
	} else if c.untrusted.Add(1) >= manyUntrusted {
		c.warn(report.UntrustedPeer, "")
	}
}

func newChecks() *checks {
	return &checks{lines: report.Lines{Log: report.Log{Loggers: []*slog.Logger{nil}}, Lists: []*findings.List{new(findings.List), &findings.Process}}}
}

// due reports whether nothing was said about a check yet.
func (c *checks) due(line report.Line) bool { return c.done.Due(line) }

// warn reports a check of a rule, or of none, unless it was reported before.
func (c *checks) warn(line report.Line, rule string) {
	if c.done.First(line) {
		c.lines.Find(line, rule, "")
	}
}
