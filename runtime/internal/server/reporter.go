package server

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime/internal/callers"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rediswire"
)

const (
	reportFirst = 10 * time.Second // after the start: what ends before that reports nothing
	reportEvery = time.Minute
	reportSoon  = time.Second         // after a change of overrides
	aliveEvery  = bridge.AliveFor / 3 // a sign that the process lives
)

// A process tells of so many keys that Redis was asked about, of so many whose permits it holds, and the calls of
// so many rules.
const (
	mostAsked = 10
	mostHeld  = 50
	mostRules = 100
)

// A State is what a limiter has in force.
type State struct {
	Rules    []observe.RuleState
	Version  string // of overrides
	Findings []bridge.FindingGroup
}

// A Reporter tells Redis of a limiter, see [bridge.Process]. Its upper fields are set before it begins.
type Reporter struct {
	Client    rediswire.Client
	Namespace string
	Disabled  bool
	Source    string         // of overrides
	Kept      *time.Duration // for how long Redis keeps who was refused; nil: as usual
	Secret    []byte         // by which keys are hidden, or nil
	Events    *report.Events
	State     func() State
	Decided   func() map[string][4]int64 // how many calls of each rule were admitted, refused, over in shadow mode and undecided
	Permits   func(most int) []bridge.KeyPermits
	Denied    func(error) bool // says that the process may not do something

	calls *callers.Calls // nil before it begins
	name  string
	taken time.Time           // when the calls last were
	told  map[string][4]int64 // Decided, as it then was
	place map[string]int      // of rules in the last report, by their names
	blind bool                // it may not read which namespaces there are

	written atomic.Bool  // there may be a report in Redis
	ahead   atomic.Int64 // by how many nanoseconds the clock of Redis is, as far as is known
	changed atomic.Int64 // when overrides have last changed, in nanoseconds since 1970; 0: never
	mu      sync.Mutex
	timer   *time.Timer // nil: there are no reports
	due     time.Time   // when the next one is
	closed  bool
	running sync.WaitGroup
}

// processName is that of this process, and limiterCount counts the limiters in it.
var (
	processName = sync.OnceValue(func() string { return hostName() + "-" + strings.ToLower(rand.Text()[:8]) })
	hostName    = sync.OnceValue(func() string {
		host, _ := os.Hostname()
		return fmt.Sprintf("%.100s", cmp.Or(host, "unknown"))
	})
	buildName = sync.OnceValue(func() string {
		info, is := debug.ReadBuildInfo()
		if !is {
			return ""
		}
		version := strings.TrimPrefix(info.Main.Version, "(devel)")
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && version == "" {
				version = fmt.Sprintf("%.12s", s.Value)
			}
		}
		return fmt.Sprintf("%.60s", version)
	})
	limiterCount atomic.Int64
)

// Begin reports from now on, and returns what counts the calls. That is nil if there are no reports.
func (r *Reporter) Begin() *callers.Calls {
	if r.Client == nil || r.Disabled {
		return nil
	}
	r.name = fmt.Sprintf("%s-%d", processName(), limiterCount.Add(1))
	r.calls, r.taken = callers.NewCalls(), time.Now()
	if r.kept() > 0 {
		r.calls.Refused = callers.NewCounter()
	}
	watched := weak.Make(r) // which a timer need not keep in memory
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due = time.Now().Add(reportFirst)
	r.timer = time.AfterFunc(reportFirst, func() {
		if r := watched.Value(); r != nil {
			r.round()
		}
	})
	return r.calls
}

func (r *Reporter) kept() time.Duration {
	if r.Kept == nil {
		return bridge.KeepRefusals
	}
	return *r.Kept
}

// round makes a report if it is due, or gives a sign of life.
func (r *Reporter) round() {
	is, due := r.enter()
	if !is {
		return
	}
	defer r.running.Done()
	if due {
		r.Report()
	} else {
		r.live()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.timer.Reset(min(max(time.Until(r.due), 0), aliveEvery))
	}
}

// enter notes that a report or a sign of life begins, and says whether a report is due. It returns
// false if the reports have ended.
func (r *Reporter) enter() (is, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false, false
	}
	r.running.Add(1)
	due = !time.Now().Before(r.due)
	if due { // what changes from now on is told again
		r.due = time.Now().Add(reportEvery)
	}
	return true, due
}

// Changed notes that overrides have changed, and has a report made soon.
func (r *Reporter) Changed() {
	r.changed.Store(time.Now().UnixNano() + r.ahead.Load())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil && !r.closed && time.Until(r.due) > reportSoon {
		r.due = time.Now().Add(reportSoon)
		r.timer.Reset(reportSoon)
	}
}

// ByHand has reports made by [Reporter.Report] alone, for tests.
func (r *Reporter) ByHand() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer.Stop()
	r.timer = nil
}

// live tells Redis that the process lives, if it has reported.
func (r *Reporter) live() {
	defer r.Events.Contain("redis client")
	if r.written.Load() {
		_ = r.send(told{text: lives, calls: r.tellCalls()})
	}
}

// Close ends the reports and removes the last one from Redis. It waits for that no longer than a time.
func (r *Reporter) Close(within time.Duration) {
	r.mu.Lock()
	none := r.closed || !r.written.Load()
	if r.timer != nil {
		r.timer.Stop()
	}
	r.closed = true
	r.mu.Unlock()
	if none {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.Events.Contain("redis client")
		r.running.Wait()
		_ = r.sendRefused(told{})
	}()
	clock.Await(done, within)
}
