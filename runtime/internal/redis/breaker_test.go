package redis

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime/internal/clock"
)

// A breaking is a breaker under test.
type breaking struct {
	*breaker
	*testing.T
	turns []string // since the last answer
	calls map[string]permitted
}

// A permitted call is one that was sent.
type permitted struct {
	permission
	sent time.Duration
}

func newBreaking(t *testing.T) *breaking {
	b := &breaking{T: t, calls: map[string]permitted{}}
	cfg := quiet(t)
	cfg.Changed = func(_ string, open bool) {
		b.turns = append(b.turns, map[bool]string{true: "opens", false: "closes"}[open])
	}
	b.breaker = newBreaker(&Router{cfg: cfg}, "")
	return b
}

// TestBreaker plays the document of breakers. A step of it is one of
//
//	allow NAME          asks for a call, which may be a probe
//	fail NAME           ends it, as do succeed NAME, late NAME and cancel NAME
//	fail, late, cancel  is a call that ends so; it fails when the timeout is over
//	advance TIME, check now, retire now
//
// The answer has how the breaker turns.
func TestBreaker(t *testing.T) {
	document.Run(t, "testdata/breaker.txt", "all", func(t *testing.T, s *document.Scenario, world document.World, _ *strings.Replacer) {
		b := newBreaking(t)
		for _, l := range s.Lines {
			if l.Step != "" {
				l.Answer(t, world, b.step(l.Step))
			}
		}
	})
}

// step does steps one after the other, as often as it says.
func (b *breaking) step(text string) string {
	return document.Repeat(text, " | ", []string{"advance", "fail", "fail;", "allow"}, func(text string) string {
		var all []string
		for one := range strings.SplitSeq(text, "; ") {
			if answer := b.do(one); answer != "" {
				all = append(all, answer)
			}
		}
		return strings.Join(all, "; ")
	})
}

func (b *breaking) do(step string) (answer string) {
	verb, name, _ := strings.Cut(step, " ")
	if name == "" {
		answer = b.allow("")
	}
	call := b.calls[name]
	switch verb {
	case "allow":
		answer = b.allow(name)
	case "fail":
		if name == "" {
			time.Sleep(timeout)
		}
		b.Failure(call.permission, call.sent)
	case "succeed":
		b.Success(call.permission)
	case "late":
		b.Late(call.permission)
	case "cancel":
		b.Cancel(call.permission)
	case "advance":
		d, err := document.Duration(name)
		if err != nil {
			b.Fatal(err)
		}
		time.Sleep(d)
	case "check":
		b.Check(clock.Now())
	case "retire":
		b.Retire()
	default:
		b.Fatalf("no step is %q", step)
	}
	answer, b.turns = strings.TrimSpace(answer+" "+strings.Join(b.turns, " ")), nil
	return answer
}

func (b *breaking) allow(name string) string {
	p, is := b.Allow(clock.Now())
	if !is {
		return "refused"
	}
	b.calls[name] = permitted{p, clock.Now()}
	if p.Probe() {
		return "probe"
	}
	return ""
}

// TestProbesApart wants probes to be at times of their own: processes would probe together.
func TestProbesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, seen := newBreaking(t), map[time.Duration]bool{}
		b.step("4x fail")
		for range 20 {
			began := time.Now()
			for b.do("allow a") != "probe" {
				time.Sleep(time.Millisecond)
			}
			b.do("fail a")
			seen[time.Since(began)] = true
		}
		if len(seen) < 5 {
			t.Errorf("20 probes were only %d different times apart", len(seen))
		}
	})
}
