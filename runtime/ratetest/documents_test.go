package ratetest_test

import (
	"cmp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/ratetest"
)

// TestDocuments plays the documents of this package, in a bubble and outside of one. Beside the steps of limiters, which
// package documents has, a step of them is one of
//
//	next RULE N ANSWER, always RULE ANSWER   an answer is refuse TIME, unavailable, slow TIME or none
//	check RULE admitted=N VERDICT=N cost=N keys=KEY/KEY …
//	nothing else
//	accept CODES
//	fail TEXT, skip                          of the test that the limiter is for
//	failures                                 ends that test, and tells its failures
func TestDocuments(t *testing.T) {
	for _, s := range document.Read(t, "testdata/*.txt") {
		t.Run(s.Name, func(t *testing.T) {
			for _, variant := range s.Variants() {
				if only, is := s.Arg("only"); !is || only[0] == "outside" {
					play(t, s, variant, "outside")
				}
				if only, is := s.Arg("only"); !is || only[0] == "bubble" {
					synctest.Test(t, func(t *testing.T) { play(t, s, variant, "bubble") })
				}
			}
		})
	}
}

// A trial is a test that a limiter is for.
type trial struct {
	fake
	limiter *ratetest.Limiter
	ended   bool
}

func play(t *testing.T, s *document.Scenario, variant []string, world string) {
	f := new(trial)
	own := documents.Own{Do: f.do, Outside: world == "outside", Open: func(opts ...runtime.Option) *runtime.Limiter {
		f.limiter = ratetest.New(f, opts...)
		return f.limiter.Limiter
	}}
	own.Play(t, s, variant, world)
	if text := f.end(); text != "none" && !f.ended {
		t.Errorf("%s %s: failures: %s", s.Name, variant, text)
	}
}

// end runs the rest of the test, and returns its failures, each in a line.
func (f *trial) end() string {
	for _, c := range f.cleanups {
		c()
	}
	f.cleanups = nil
	var all []string
	for _, failure := range f.failures {
		all = append(all, strings.Join(strings.Fields(failure), " "))
	}
	return cmp.Or(strings.Join(all, " | "), "none")
}

// do does a step, which may end its goroutine.
func (f *trial) do(verb string, words []string) (answer string, is bool) {
	done := make(chan bool)
	go func() {
		defer close(done)
		is = true
		switch verb {
		case "next":
			f.limiter.Next(words[0], int(number(words[1])), answerOf(words[2:]))
		case "always":
			f.limiter.Always(words[0], answerOf(words[1:]))
		case "check":
			check(f.limiter.Check(words[0]), words[1:])
		case "nothing":
			f.limiter.NothingElse()
		case "accept":
			f.limiter.Accept(words...)
		case "advance":
			f.limiter.Advance(duration(words[0]))
		case "fail":
			f.Errorf("%s", strings.Join(words, " "))
		case "skip":
			f.skipped = true
		case "failures":
			answer, f.ended = f.end(), true
		default:
			is = false
		}
	}()
	<-done
	return answer, is
}

func check(c *ratetest.Check, words []string) {
	for _, word := range words {
		what, want, _ := strings.Cut(word, "=")
		switch what {
		case "admitted":
			c.Admitted(int(number(want)))
		case "refused":
			c.Refused(int(number(want)))
		case "cost":
			c.Cost(number(want))
		case "keys":
			c.Keys(strings.Split(want, "/")...)
		case "no-keys":
			c.Keys()
		default:
			v := observe.Verdict(0)
			for ; v.String() != what; v++ {
			}
			c.Verdict(v, int(number(want)))
		}
	}
}

func answerOf(words []string) ratetest.Answer {
	switch words[0] {
	case "refuse":
		return ratetest.Refuse(duration(words[1]))
	case "unavailable":
		return ratetest.Unavailable()
	case "slow":
		return ratetest.Slow(duration(words[1]))
	}
	return ratetest.Answer{}
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func duration(text string) time.Duration {
	if text == "never" {
		return runtime.Never
	}
	d, err := document.Duration(text)
	if err != nil {
		panic(err)
	}
	return d
}
