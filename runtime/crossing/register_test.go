package crossing

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A register makes another rule known beside one of the program's. Both have a start of their keys
// or a name in common, or nothing, and the same terms or not.
type register struct {
	Rule  int
	Other *runtime.Rule
	Panic bool // is wanted
}

// drawRegister draws a rule beside one that others do not have the keys of by other terms.
func drawRegister(t *rapid.T, p *program) register {
	x := register{Rule: rapid.SampledFrom(slices.DeleteFunc(indexes(p.Rules), func(i int) bool { return i > 0 && p.shares(i) })).Draw(t, "registered")}
	r := p.Rules[x.Rule]
	other := *r
	common := rapid.SampledFrom([]string{"start", "name", "nothing"}).Draw(t, "common")
	switch common {
	case "start":
		other.Name = "beside " + r.Name
		if other.Prefix == "" {
			other.Prefix = "rate_limit:" + r.Name + ":"
		}
	case "name":
		other.Prefix = "beside:" + r.Name + ":"
	default:
		other.Name, other.Prefix = "beside "+r.Name, "beside:"+r.Name+":"
	}
	term := rapid.SampledFrom([]string{"max", "window", "hold", "mode", "policy", "none"}).Draw(t, "other term")
	switch {
	case term == "max":
		other.Max++
		x.Panic = true
	case term == "window" && r.Period == rule.NoPeriod:
		other.Window *= 2
		x.Panic = true
	case term == "hold" && r.Lease == 0 && r.Algorithm != runtime.Concurrency && r.Reserve == 0 && r.Debt != rule.DebtCarry:
		other.Hold = !r.Hold
		x.Panic = true
	case term == "mode":
		other.Mode = runtime.ModeShadow
	case term == "policy":
		other.Fail, other.Message = runtime.FailClosed, "later"
	}
	x.Panic = x.Panic && common != "nothing"
	x.Other = &other
	return x
}

// run registers the rule on a limiter that has no other, and wants a panic where the two would
// not be one limit.
func (r register) run(p *process) {
	limiter := runtime.New(runtime.NewMemoryStore())
	defer limiter.Close()
	limiter.Register(p.program.Rules[r.Rule])
	if got := panics(func() { limiter.Register(r.Other) }); got != r.Panic {
		p.history.contradict("rules of one start or name have the same terms, or panic", "beside %s: %s: %s %s: panic=%t, want %t",
			p.program.Rules[r.Rule].Name, document.Fields(p.program.Rules[r.Rule]), r.Other.Name, document.Fields(r.Other), got, r.Panic)
	}
}

func panics(do func()) (is bool) {
	defer func() { is = recover() != nil }()
	do()
	return false
}
