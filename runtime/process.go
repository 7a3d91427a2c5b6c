package runtime

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/server"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

const (
	reportFirst = 10 * time.Second // after the start: what ends before that reports nothing
	reportEvery = time.Minute
	reportSoon  = time.Second         // after a change of overrides
	aliveEvery  = bridge.AliveFor / 3 // a sign that the process lives
)

// WithoutReports has a limiter tell Redis nothing of itself: neither which rules and overrides are in force,
// nor whom it refuses. Then ratectl does not know whether it follows the overrides that are changed.
func WithoutReports() Option { return func(l *Limiter) { l.reports.disabled = true } }

func (s lentStore) Processes(ctx context.Context, namespace string) ([]bridge.Process, error) {
	const failed = "read the reports of processes: %w"
	told, err := server.Processes(ctx, s.client, namespace)
	if err != nil {
		return nil, fmt.Errorf(failed, err)
	}
	newest, rules := map[string]bridge.Process{}, map[string][]bridge.ProcessRule{}
	for _, text := range told.Texts {
		var p bridge.Process
		if json.Unmarshal([]byte(text), &p) == nil && p.At.After(newest[p.Name].At) {
			newest[p.Name], rules[p.Digest] = p, nil
		}
	}
	digests := slices.Sorted(maps.Keys(rules))
	texts, err := server.ProcessRules(ctx, s.client, namespace, digests)
	if err != nil {
		return nil, fmt.Errorf(failed, err)
	}
	for i, text := range texts {
		var shared []bridge.ProcessRule
		if json.Unmarshal([]byte(text), &shared) == nil {
			rules[digests[i]] = shared
		}
	}
	all := slices.SortedFunc(maps.Values(newest), func(a, b bridge.Process) int { return cmp.Compare(a.Name, b.Name) })
	for i := range all {
		p := &all[i]
		p.Alive, p.Rules = told.Alive[p.Name], slices.Clone(rules[p.Digest])
		_ = json.Unmarshal([]byte(told.Calls[p.Name]), &p.Calls) // without any there are none
		p.Silent = told.Now.Sub(p.Alive) > bridge.AliveFor
		for n := range p.Rules {
			p.Rules[n].Called = n/8 < len(p.Called) && p.Called[n/8]>>(n%8)&1 == 1
		}
	}
	return all, nil
}

func (l lent) Processes(ctx context.Context) ([]bridge.Process, error) {
	if l.redis == nil {
		return nil, nil
	}
	return lentStore{l.redis}.Processes(ctx, l.plans.Namespace)
}

// reports makes the reports of a limiter to Redis, see [bridge.Process].
type reports struct {
	disabled bool
	name     string
	source   string // of overrides
	blind    bool   // it may not read which namespaces there are

	written atomic.Bool  // there may be one in Redis
	ahead   atomic.Int64 // by how many nanoseconds the clock of Redis is, as far as is known
	changed atomic.Int64 // when overrides have last changed, in nanoseconds since 1970; 0: never
	mu      sync.Mutex
	timer   *time.Timer // nil: there are none
	due     time.Time   // when the next report is
	closed  bool
	running sync.WaitGroup
}

// processName is that of this process, and limiters counts the limiters in it.
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
	l.reports.due = time.Now().Add(reportFirst)
	l.reports.timer = time.AfterFunc(reportFirst, func() {
		l := watched.Value()
		if l == nil {
			return
		}
		is, due := l.reports.enter()
		if !is {
			return
		}
		defer l.reports.running.Done()
		if due {
			l.report()
		} else {
			l.live()
		}
		l.reports.again()
	})
}

// enter notes that a report or a sign of life begins, and says whether a report is due. It returns
// false if the reports have ended.
func (r *reports) enter() (is, due bool) {
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

// again has the next report made when it is due, and a sign of life before.
func (r *reports) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.timer.Reset(min(max(time.Until(r.due), 0), aliveEvery))
	}
}

// soon has a report made after a time, or earlier if one is due.
func (r *reports) soon(after time.Duration) {
	r.changed.Store(time.Now().UnixNano() + r.ahead.Load())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil && !r.closed && time.Until(r.due) > after {
		r.due = time.Now().Add(after)
		r.timer.Reset(after)
	}
}

// live tells Redis that the process lives, if it has reported.
func (l *Limiter) live() {
	defer l.events.contain("redis client")
	if l.reports.written.Load() {
		_ = l.sent(server.Report{Text: server.Lives, Calls: l.tellCalls()})
	}
}

// report tells Redis what is in force, if there are rules.
func (l *Limiter) report() {
	defer l.events.contain("redis client")
	rules := l.Rules()
	if len(rules) == 0 {
		return
	}
	if !l.reports.written.Swap(true) {
		_ = l.sent(server.Report{Text: server.Lives}) // for the time of Redis
	}
	rules = rules[:min(len(rules), bridge.MaxReported)]
	p := bridge.Process{Name: l.reports.name, Host: hostName(), Build: buildName(), At: time.Now(), Behind: time.Duration(l.reports.ahead.Load()),
		Overrides: l.reports.source, Findings: bridge.GroupFindings(lent{l}.Found(), l.callsOf()), Called: make([]byte, (len(rules)+7)/8)}
	if o := l.plans.Overrides(); o != nil {
		p.Version = o.Version()
	}
	if at := l.reports.changed.Load(); at != 0 {
		p.Since = time.Unix(0, at).UTC()
	}
	shared := make([]bridge.ProcessRule, len(rules))
	for i, s := range rules {
		shared[i] = bridge.ProcessRule{Name: s.Rule.Name, Terms: termsOf(s.Rule)}
		if s.Called {
			p.Called[i/8] |= 1 << (i % 8)
		}
	}
	told, _ := json.Marshal(shared) // of texts, numbers and times
	sum := sha256.Sum256(told)
	p.Digest = hex.EncodeToString(sum[:12])
	text, _ := json.Marshal(p)
	err := l.send(server.Report{Text: string(text), Digest: p.Digest, Rules: string(told), Calls: l.tellCalls()})
	if err == nil {
		l.events.log.Remove(report.ReportRefused)
		l.checkNamespaces()
	} else if ClassOf(err) == observe.ClassAuth { // with other faults calls have the same
		l.events.log.Find(report.ReportRefused, "", "", slog.Any("error", err))
	}
}

// tellCalls returns the calls since the last time as they are told.
func (l *Limiter) tellCalls() string {
	text, _ := json.Marshal(l.refused.takeCalls(&l.ledger.Permits)) // of texts, numbers and times
	return string(text)
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
	l.events.log.RemoveRules(report.Namespaces, func(rule string) bool { return rule == "" && len(others) == 0 })
	for _, other := range others {
		l.events.log.Find(report.Namespaces, "", other, slog.String("namespace", other))
	}
}

// send sends a report, and with it what was refused since the last one.
func (l *Limiter) send(r server.Report) error {
	r.Refused = l.refused.take()
	err := l.sent(r)
	if err != nil && len(r.Refused) > 0 {
		l.refused.counter.Return(r.Refused)
	}
	return err
}

// sent sends a report as it is, and learns the time of Redis.
func (l *Limiter) sent(r server.Report) error {
	r.Process, r.Kept, r.Hidden = l.reports.name, l.refused.kept, l.refused.hidden
	ahead, err := server.ReportProcess(context.Background(), l.redis.client, l.plans.Namespace, r)
	if err == nil {
		l.reports.ahead.Store(int64(ahead))
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
		_ = l.send(server.Report{})
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
