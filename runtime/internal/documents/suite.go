// Package documents has what every [runtime.Store] must do, as documents that are played over any
// of them:
//
//	func TestStore(t *testing.T) {
//		documents.Run(t, func(t *testing.T) documents.Subject { ... })
//	}
//
// They are in runtime/testdata/store. What a step asks is in step.go. Those in runtime/testdata/redis are about what
// Redis itself keeps, and are played where that can be looked at.
package documents

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A Subject is a store under test and its clock.
type Subject struct {
	Store runtime.Store
	// Now returns the store's clock, in microseconds since 1970.
	Now func() int64
	// Advance returns when the store's clock has come forward by d, and has
	// come forward by exactly d if the subject is Exact.
	Advance func(d time.Duration)
	// Exact says that the clock stands still but for Advance, that it shows the same at
	// the beginning of each test, and that a negative d sets it back.
	Exact bool
	// Slow says that a call costs milliseconds of processor time. Fewer values and
	// seeds are tried then: subjects that are not slow try all.
	Slow bool
	// Lives returns for how long a key is kept, or is nil.
	Lives func(key string) time.Duration
	// Step does a step that the suite does not know, or is nil.
	Step func(text string, of Steps) string
}

// Steps are what a subject's own steps have of the suite's: the key of a name, an answer to another step, and the
// time that a word means.
type Steps struct {
	Key  func(name string) string
	Do   func(text string) string
	Time func(word string) time.Duration
}

// Run runs the suite for every way of counting. start returns a store for each
// test; its keys need not be gone, because no two tests name the same one.
func Run(t *testing.T, start func(t *testing.T) Subject) { run(t, Rules(), 1, start) }

// RunFew is Run, for a quarter of the ways of counting under the race detector. It is for
// subjects whose tests cost much, and have one goroutine ask after the other.
func RunFew(t *testing.T, start func(t *testing.T) Subject) {
	run(t, few(), 1, start)
}

func few() (rules []runtime.Rule) {
	all := Rules()
	for i := 0; i < len(all); i += len(all) / effort.Few(len(all)) {
		rules = append(rules, all[i])
	}
	return rules
}

// RunOthers plays other documents, as many as RunFew, one after the other for each way of counting, on what open
// returns for that.
func RunOthers(t *testing.T, pattern string, open func(t *testing.T) func(t *testing.T) Subject) {
	scenarios := document.Read(t, Documents(t, pattern))
	for _, rule := range few() {
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			start := open(t)
			for _, s := range scenarios {
				if !holds(s, rule.Name) {
					continue
				}
				t.Run(s.Name, func(t *testing.T) {
					for _, variant := range s.Variants() {
						play(t, start, s, &rule, variant)
					}
				})
			}
		})
	}
}

// RunSome is Run in a full run. A quick one has one in 36 of the tests for each way of
// counting, other ones for each. It is for subjects that cost much and carry out the
// scripts, which another subject tries with all tests.
func RunSome(t *testing.T, start func(t *testing.T) Subject) {
	run(t, Rules(), effort.Choose(effort.ChooseMore(36, 12), 1), start)
}

// RunSeldom is RunSome, with one in 4 of the tests in a full run that is not one of [effort.All]. It is for
// subjects that cost minutes, and prove nothing about Redis.
func RunSeldom(t *testing.T, start func(t *testing.T) Subject) {
	every := effort.Choose(effort.ChooseMore(36, 12), 4)
	if effort.All() {
		every = 1
	}
	run(t, Rules(), every, start)
}

// run runs one of so many tests for a rule, and the one after it for the next rule.
func run(t *testing.T, rules []runtime.Rule, every int, start func(t *testing.T) Subject) {
	scenarios := document.Read(t, Documents(t, "store/*.txt"))
	for r, rule := range rules {
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			for i, s := range scenarios {
				if i%every != r%every || !holds(s, rule.Name) {
					continue
				}
				t.Run(s.Name, func(t *testing.T) {
					t.Parallel()
					for _, variant := range s.Variants() {
						play(t, start, s, &rule, variant)
					}
				})
			}
			for i, test := range tests {
				if i%every != r%every || rule.Headroom != 0 || test.skip(&rule) {
					continue
				}
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					if subject := start(t); subject.Exact || !test.exact {
						test.run(newTrial(t, subject, &rule))
					}
				})
			}
		})
	}
}

// Documents returns a pattern of files below runtime/testdata, for a test below runtime.
func Documents(t *testing.T, pattern string) string {
	at, err := os.Getwd()
	for err == nil && filepath.Base(at) != "runtime" {
		if at == filepath.Dir(at) {
			t.Fatal("the test is not of a package below runtime")
		}
		at = filepath.Dir(at)
	}
	return filepath.Join(at, "testdata", pattern)
}

// groups are names for several ways of counting.
var groups = map[string][]string{
	"logs":     {"zset", "packed", "zset in slices", "packed in slices"},
	"counters": {"equal buckets", "layered buckets", "adaptive buckets"},
	"fixed":    {"fixed window", "calendar"},
	"buckets":  {"token bucket", "leaky bucket"},
}

// holds reports whether a scenario is for a way of counting. Those for shares name them: what is left to a
// share is less than there is.
func holds(s *document.Scenario, name string) bool {
	among := func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return n == name || slices.Contains(groups[n], name) })
	}
	only, is := s.Arg("only")
	is = is || name == Shares
	but, _ := s.Arg("except")
	return (!is || among(only)) && !among(but)
}

// Shares is the name of the rule that shares divide.
const Shares = "shares"

// Rules returns a rule for every way of counting, named after it.
func Rules() []runtime.Rule {
	rules := []runtime.Rule{
		{Name: "zset"},
		{Name: "packed", Storage: runtime.StoragePacked},
		{Name: "zset in slices", Resolution: 10 * time.Millisecond},
		{Name: "packed in slices", Resolution: 10 * time.Millisecond, Storage: runtime.StoragePacked},
		{Name: "equal buckets", Algorithm: runtime.SlidingCounter},
		{Name: "layered buckets", Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10)},
		{Name: "adaptive buckets", Algorithm: runtime.SlidingCounter, Buckets: rule.AdaptiveBuckets()},
		{Name: "fixed window", Algorithm: runtime.FixedWindow},
		{Name: "calendar", Algorithm: runtime.FixedWindow, Period: rule.Year},
		{Name: "token bucket", Algorithm: runtime.TokenBucket},
		{Name: "leaky bucket", Algorithm: runtime.LeakyBucket},
		{Name: "queue", Algorithm: runtime.LeakyBucket, Wait: 366 * 24 * time.Hour},
		{Name: Shares, Algorithm: runtime.TokenBucket, Headroom: 4},
	}
	for a, name := range algorithm.Names { // those without a rule above count in one way
		if !slices.ContainsFunc(rules, func(r runtime.Rule) bool { return int(r.Algorithm) == a }) {
			rules = append(rules, runtime.Rule{Name: name, Algorithm: runtime.Algorithm(a)})
		}
	}
	for i := range rules {
		// So long that no test on a real clock sees it move.
		rules[i].Max = 10
		if !isCalendar(&rules[i]) {
			rules[i].Window = 10 * time.Hour
		}
	}
	return rules
}

// OnServerTime returns a store on the clock of a server, which all servers of this machine
// share.
func OnServerTime(t *testing.T, store runtime.Store, clock *redis.Client) Subject {
	now := func() int64 {
		at, err := clock.Time(context.Background()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return at.UnixMicro()
	}
	return Subject{
		Store: store,
		Now:   now,
		Advance: func(d time.Duration) {
			for until := now() + d.Microseconds(); ; {
				left := time.Duration(until-now()) * time.Microsecond
				if left <= 0 {
					return
				}
				time.Sleep(left)
			}
		},
	}
}

func isCalendar(r *runtime.Rule) bool { return r.Period != rule.NoPeriod }
func isQueue(r *runtime.Rule) bool    { return r.Wait > 0 }

func isBucket(r *runtime.Rule) bool {
	return r.Algorithm == runtime.TokenBucket || r.Algorithm == runtime.LeakyBucket
}
