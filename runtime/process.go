package runtime

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/server"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

const (
	reportFirst = 10 * time.Second // after the start: what ends before that reports nothing
	reportEvery = time.Minute
	reportSoon  = time.Second // after a change of overrides
)

// MaxReported is how many rules, and how many findings, a [Process] has at most.
const MaxReported = 1_000

// A Process is the report of a limiter to the Redis of its store: it says what the limiter has in
// force. A limiter with rules reports ten seconds after its start, a second after overrides have
// changed, and each minute. A report is a trip of its own, for which no call waits. Redis keeps
// it for four minutes at most.
type Process struct {
	// Name is that of the machine and something random. A process with several limiters in a
	// namespace has several.
	Name string `json:"name"`
	// At is when it was told, by the clock of the process.
	At time.Time `json:"at"`
	// Overrides says where the overrides come from that it follows: "redis:" and the key of a
	// hash, "file:" and a path, "function", or nothing.
	Overrides string `json:"overrides,omitempty"`
	// Version is that of the overrides in force, see [Overrides.Version].
	Version string `json:"version,omitempty"`
	// Rules are its rules, sorted by name, [MaxReported] at most.
	Rules []ProcessRule `json:"rules"`
	// Findings are those of [Limiter.Findings], [MaxReported] at most.
	Findings []observe.Finding `json:"findings"`
}

// A ProcessRule is a rule of a [Process].
type ProcessRule struct {
	Name string `json:"name"`
	// Terms say how much it admits as it was declared, such as "5 in 10s, sliding-log".
	Terms string `json:"terms"`
	// Called reports whether a call has met the rule.
	Called bool `json:"called"`
}

// WithoutReports has a limiter tell Redis nothing of itself, see [Process] and [RefusedMinute]. Then
// ratectl does not know whether it follows the overrides that are changed.
func WithoutReports() Option { return func(l *Limiter) { l.reports.disabled = true } }

// Processes returns what limiters with a namespace have told this Redis of themselves, sorted by
// name. Those that have ended without [Limiter.Close] are among them for up to four minutes.
func (s *RedisStore) Processes(ctx context.Context, namespace string) ([]Process, error) {
	texts, err := server.Processes(ctx, s.client, namespace)
	if err != nil {
		return nil, fmt.Errorf("read the reports of processes: %w", err)
	}
	newest := map[string]Process{}
	for _, text := range texts {
		var p Process
		if json.Unmarshal([]byte(text), &p) == nil && p.At.After(newest[p.Name].At) {
			newest[p.Name] = p
		}
	}
	return slices.SortedFunc(maps.Values(newest), func(a, b Process) int { return cmp.Compare(a.Name, b.Name) }), nil
}

// Processes is [RedisStore.Processes] for the store and the namespace of the limiter. A limiter on
// another store has none.
func (l *Limiter) Processes(ctx context.Context) ([]Process, error) {
	if l.redis == nil {
		return nil, nil
	}
	return l.redis.Processes(ctx, l.plans.Namespace)
}

// reports makes the reports of a limiter to Redis, see [Process].
type reports struct {
	disabled bool
	name     string
	source   string // of overrides
	blind    bool   // it may not read which namespaces there are

	written atomic.Bool // there may be one in Redis

	mu      sync.Mutex
	timer   *time.Timer // nil: there are none
	closed  bool
	running sync.WaitGroup
}

// processName is that of this process, and limiters counts the limiters in it.
var (
	processName = sync.OnceValue(func() string {
		host, _ := os.Hostname()
		return fmt.Sprintf("%.100s-%.8s", cmp.Or(host, "unknown"), strings.ToLower(rand.Text()))
	})
	limiterCount atomic.Int64
)

// beginReports has the limiter report from now on.
func (l *Limiter) beginReports() {
	if l.redis == nil || l.reports.disabled {
		return
	}
	l.reports.name = fmt.Sprintf("%s-%d", processName(), limiterCount.Add(1))
	l.refused.begin()
	watched := weak.Make(l) // which a timer need not keep in memory
	l.reports.mu.Lock()
	defer l.reports.mu.Unlock()
	l.reports.timer = time.AfterFunc(reportFirst, func() {
		if l := watched.Value(); l != nil && l.reports.enter() {
			defer l.reports.running.Done()
			l.report()
			l.reports.schedule(reportEvery)
		}
	})
}

// enter notes that a report begins. It returns false if the reports have ended.
func (r *reports) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.running.Add(1)
	}
	return !r.closed
}

// schedule has the next report made after a time.
func (r *reports) schedule(after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil && !r.closed {
		r.timer.Reset(after)
	}
}

// report tells Redis what is in force, if there are rules.
func (l *Limiter) report() {
	defer l.events.contain("redis client")
	p := Process{Name: l.reports.name, At: time.Now(), Overrides: l.reports.source, Findings: l.Findings()}
	if o := l.plans.Overrides(); o != nil {
		p.Version = o.Version()
	}
	for _, s := range l.Rules() {
		p.Rules = append(p.Rules, ProcessRule{s.Rule.Name, termsOf(s.Rule), s.Called})
	}
	if len(p.Rules) == 0 {
		return
	}
	l.reports.written.Store(true)
	p.Rules, p.Findings = p.Rules[:min(len(p.Rules), MaxReported)], p.Findings[:min(len(p.Findings), MaxReported)]
	text, _ := json.Marshal(p) // of texts, numbers and times
	err := l.send(string(text))
	if err == nil {
		l.events.log.Over(report.ReportRefused)
		l.checkNamespaces()
	} else if ClassOf(err) == observe.ClassAuth { // with other faults calls have the same
		l.events.log.Find(report.ReportRefused, "", "", slog.Any("error", err))
	}
}

// checkNamespaces looks for processes in a namespace whose name is alike, as if one was misspelt. A
// process that may not look does not try again.
func (l *Limiter) checkNamespaces() {
	if l.reports.blind {
		return
	}
	others, err := server.SimilarNamespaces(context.Background(), l.redis.client, l.plans.Namespace, time.Now())
	if err != nil {
		l.reports.blind = ClassOf(err) == observe.ClassAuth
		return
	}
	l.events.log.OverFor(report.Namespaces, func(rule string) bool { return rule == "" && len(others) == 0 })
	for _, other := range others {
		l.events.log.Find(report.Namespaces, "", other, slog.String("namespace", other))
	}
}

// send sends a report, and with it what was refused since the last one.
func (l *Limiter) send(text string) error {
	taken := l.refused.take()
	err := server.ReportProcess(context.Background(), l.redis.client, l.plans.Namespace, server.Report{
		Process: l.reports.name, Text: text, Refused: taken, Kept: l.refused.kept, Hidden: l.refused.hidden,
	})
	if err != nil && len(taken) > 0 {
		l.refused.counter.Return(taken)
	}
	return err
}

// termsOf says how much a rule admits.
func termsOf(r *Rule) string {
	per := r.Window.String()
	if r.Period != rule.NoPeriod {
		per = "a " + r.Period.String()
	}
	return fmt.Sprintf("%d in %s, %v", r.Max, per, r.Algorithm)
}

// endReports ends the reports and removes the last one from Redis. It waits for that no longer than
// [SettleTimeout].
func (l *Limiter) endReports() {
	if l.reports.end() {
		return // there was none
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer l.events.contain("redis client")
		l.reports.running.Wait()
		_ = l.send("")
	}()
	clock.Await(done, SettleTimeout)
}

// end ends the reports, and reports whether there is none to remove.
func (r *reports) end() (none bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	none = r.closed || !r.written.Load()
	if r.timer != nil {
		r.timer.Stop()
	}
	r.closed = true
	return none
}
