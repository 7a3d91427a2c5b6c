package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/callers"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/rule"
)

// Report tells Redis what is in force, if there are rules.
func (r *Reporter) Report() {
	defer r.Events.Contain("redis client")
	s := r.State()
	if len(s.Rules) == 0 {
		return
	}
	if !r.written.Swap(true) {
		_ = r.send(told{text: lives}) // for the time of Redis
	}
	rules := s.Rules[:min(len(s.Rules), bridge.MaxReported)]
	p := bridge.Process{Name: r.name, Host: hostName(), Build: buildName(), At: time.Now(), Behind: time.Duration(r.ahead.Load()),
		Overrides: r.Source, Version: s.Version, Findings: s.Findings, Called: make([]byte, (len(rules)+7)/8)}
	if at := r.changed.Load(); at != 0 {
		p.Since = time.Unix(0, at).UTC()
	}
	shared := make([]bridge.ProcessRule, len(rules))
	r.place = make(map[string]int, len(rules))
	for i, s := range rules {
		r.place[s.Rule.Name] = i
		shared[i] = bridge.ProcessRule{Name: s.Rule.Name, Prefix: spec.Prefix(s.Rule.Prefix, s.Rule.Name), Terms: termsOf(s.Rule)}
		if s.Called {
			p.Called[i/8] |= 1 << (i % 8)
		}
	}
	all, _ := json.Marshal(shared) // of texts, numbers and times
	sum := sha256.Sum256(all)
	p.Digest = hex.EncodeToString(sum[:12])
	text, _ := json.Marshal(p)
	err := r.sendRefused(told{text: string(text), digest: p.Digest, rules: string(all), calls: r.tellCalls()})
	if err == nil {
		r.Events.Log.Remove(report.ReportRefused)
		r.checkNamespaces()
	} else if r.Denied(err) { // with other faults calls have the same
		r.Events.Log.Find(report.ReportRefused, "", "", slog.Any("error", err))
	}
}

// tellCalls returns the calls since the last time, and what is held, as they are told.
func (r *Reporter) tellCalls() string {
	now := time.Now()
	told := bridge.ProcessCalls{Seconds: now.Sub(r.taken).Seconds()}
	r.taken = now
	n, keys := r.calls.Take()
	copy(told.Decided[:], n[:callers.Asked])
	told.Asked, told.Rules = n[callers.Asked], r.takeRules()
	if r.calls.Refused != nil {
		for _, c := range keys[:min(len(keys), mostAsked)] {
			if sure := c.Count - c.Margin; sure > 0 {
				told.Keys = append(told.Keys, bridge.KeyCalls{Rule: c.Rule, Key: r.Hidden(c.Key), Count: int64(sure)})
			}
		}
		told.Permits = r.Permits(mostHeld)
		for i := range told.Permits {
			told.Permits[i].Key = r.Hidden(told.Permits[i].Key)
		}
	}
	text, _ := json.Marshal(told) // of texts, numbers and times
	return string(text)
}

// takeRules returns the calls of rules since the last time, those with most first, by the places of the rules.
func (r *Reporter) takeRules() (all [][5]int64) {
	before := r.told
	r.told = r.Decided()
	sum := func(n [5]int64) int64 { return n[1] + n[2] + n[3] + n[4] }
	for name, n := range r.told {
		place, is := r.place[name]
		one := [5]int64{int64(place)}
		for i := range n {
			one[i+1] = n[i] - before[name][i]
		}
		if is && sum(one) > 0 {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b [5]int64) int { return cmp.Or(cmp.Compare(sum(b), sum(a)), cmp.Compare(a[0], b[0])) })
	return all[:min(len(all), mostRules)]
}

// Hidden returns a key as Redis is told it.
func (r *Reporter) Hidden(key string) string {
	if len(r.Secret) == 0 {
		return key
	}
	return spec.HiddenKey(r.Secret, key)
}

// checkNamespaces looks for processes in a namespace whose name is alike, as if one was misspelt. A
// process that may not look does not try again.
func (r *Reporter) checkNamespaces() {
	if r.blind {
		return
	}
	others, err := similarNamespaces(context.Background(), r.Client, r.Namespace, time.Now())
	if err != nil {
		r.blind = r.Denied(err)
		return
	}
	r.Events.Log.RemoveRules(report.Namespaces, func(rule string) bool { return rule == "" && len(others) == 0 })
	for _, other := range others {
		r.Events.Log.Find(report.Namespaces, "", other, slog.String("namespace", other))
	}
}

// sendRefused sends a report, and with it who was refused since the last one.
func (r *Reporter) sendRefused(t told) error {
	if r.calls.Refused == nil {
		return r.send(t)
	}
	t.refused = r.calls.Refused.Take()
	err := r.send(t)
	if err != nil {
		r.calls.Refused.Return(t.refused)
	}
	return err
}

// send sends a report as it is, and learns the time of Redis.
func (r *Reporter) send(t told) error {
	ctx, cancel := context.WithTimeout(context.Background(), processTime)
	defer cancel()
	ahead, missing, err := r.write(ctx, t, "")
	if missing && err == nil { // nobody has told them lately
		t.refused = nil
		_, _, err = r.write(ctx, t, t.rules)
	}
	if err == nil {
		r.ahead.Store(int64(ahead))
	}
	return err
}

// termsOf says how much a rule admits.
func termsOf(r *rule.Rule) string {
	per := r.Window.String()
	if r.Period != rule.NoPeriod {
		per = "a " + r.Period.String()
	}
	return fmt.Sprintf("%d in %s, %v", r.Max, per, r.Algorithm)
}
