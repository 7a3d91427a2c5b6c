package ratehttp

import (
	"log/slog"
	"sync/atomic"

	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/report"
)

// A check is something that a program should not do, and is told once.
type check uint8

const (
	untrustedProxy check = iota
	otherHeader
	untrustedPeer
	addressKey
	unknownPeer
	noAddress
	noClient
	emptyKey
	limitedTwice
	middlewareTwice
	partitionPanicked
	corsInside
	numChecks
)

// checked are the lines of the checks.
var checked = [numChecks]report.Line{
	untrustedProxy:    report.UntrustedProxy,
	otherHeader:       report.OtherHeader,
	untrustedPeer:     report.UntrustedPeer,
	addressKey:        report.AddressKey,
	unknownPeer:       report.UnknownPeer,
	noAddress:         report.NoAddress,
	noClient:          report.NoClient,
	emptyKey:          report.EmptyKey,
	limitedTwice:      report.LimitedTwice,
	middlewareTwice:   report.MiddlewareTwice,
	partitionPanicked: report.PartitionPanicked,
	corsInside:        report.CorsInside,
}

// checks reports each check once, to the log and as a finding, and never what a client has sent.
type checks struct {
	lines report.Lines
	done  [numChecks]atomic.Bool

	untrusted atomic.Int64 // requests of peers that are not trusted, with the header of those that are
}

// manyUntrusted is how many such requests are too many, if no other has come: a client can write
// the header itself.
const manyUntrusted = 100

// peer notes whether a request with the header of the trusted proxies came from one.
func (c *checks) peer(trusted bool) {
	if trusted {
		c.done[untrustedPeer].Store(true)
	} else if c.untrusted.Add(1) >= manyUntrusted {
		c.warn(untrustedPeer, "")
	}
}

func newChecks() *checks {
	return &checks{lines: report.Lines{Log: report.Log{Loggers: []*slog.Logger{nil}}, Lists: []*findings.List{new(findings.List), &findings.Process}}}
}

// due reports whether nothing was said about a check yet.
func (c *checks) due(which check) bool { return !c.done[which].Load() }

// warn reports a check of a rule, or of none, unless it was reported before.
func (c *checks) warn(which check, rule string) {
	if c.due(which) && c.done[which].CompareAndSwap(false, true) {
		c.lines.Find(checked[which], rule, "")
	}
}
