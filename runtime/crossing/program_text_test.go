package crossing

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// String returns the program as a list that can be read.
func (p *program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d processes", p.Processes)
	if p.Cap != nil {
		fmt.Fprintf(&b, ", each with a cap of %s", ruleText(p.Cap))
	}
	if p.OneClient {
		b.WriteString(" with one client")
	}
	if p.Replicas > 1 {
		fmt.Fprintf(&b, ", as if of %d", p.Replicas)
	}
	if p.Trip != (trip{}) {
		fmt.Fprintf(&b, ", trips %+v", p.Trip)
	}
	if p.Closes {
		b.WriteString(", the first of which is closed at the end of all steps")
	}
	if !p.Begins.IsZero() {
		fmt.Fprintf(&b, ", from %v on", p.Begins.UTC())
	}
	for i, r := range p.Rules {
		fmt.Fprintf(&b, "\n  rule %d: %s", i, ruleText(r))
	}
	at := time.Duration(0)
	for _, s := range p.Steps {
		at += s.Gap
		fmt.Fprintf(&b, "\n  %-12v process %d: %v", at, s.Process, s.Do)
		if s.Times > 1 {
			fmt.Fprintf(&b, "; %d times, every %v", s.Times, s.Every)
		}
	}
	return b.String()
}

func ruleText(r *runtime.Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %d in %v", r.Algorithm, r.Max, r.Window)
	if r.Period != rule.NoPeriod {
		b.Reset()
		fmt.Fprintf(&b, "%v %d in a %v in %q anchor %d", r.Algorithm, r.Max, r.Period, r.Zone, r.Anchor)
	}
	if r.Algorithm == runtime.SlidingLog {
		fmt.Fprintf(&b, " %v", r.Storage)
	}
	if r.Algorithm == runtime.SlidingCounter {
		fmt.Fprintf(&b, " buckets=%v", r.Buckets)
	}
	for _, o := range []struct {
		name string
		set  bool
		is   any
	}{
		{"burst", r.Burst > 0, r.Burst}, {"headroom", r.Headroom != 0, r.Headroom}, {"wait", r.Wait > 0, r.Wait}, {"lease", r.Lease > 0, r.Lease},
		{"resolution", r.Resolution > 0, r.Resolution}, {"fail", r.Fail != 0, r.Fail}, {"mode", r.Mode != 0, r.Mode},
		{"prefix", r.Prefix != "", r.Prefix}, {"block", r.Block > 0, r.Block}, {"hold", r.Hold, r.Hold}, {"adapts", r.Adaptive != nil, ""}, {"reserve", r.Reserve > 0, r.Reserve}, {"debt", r.Debt != 0, r.Debt}, {"invalid", r.Invalid != 0, r.Invalid}, {"keep", r.Keep > 0, r.Keep},
	} {
		if o.set {
			fmt.Fprintf(&b, " %s=%v", o.name, o.is)
		}
	}
	return b.String()
}

func (u use) String() string {
	text := fmt.Sprintf("rule %d key %d cost %d", u.Rule, u.Key, u.Cost)
	if u.Key == nobody {
		text = fmt.Sprintf("rule %d without a key cost %d", u.Rule, u.Cost)
	}
	if u.Max > 0 {
		text += fmt.Sprintf(" max %d", u.Max)
	}
	if u.Weight > 0 {
		text += fmt.Sprintf(" tenant %d weight %d", u.Tenant, u.Weight)
	}
	if u.Zone != "" {
		text += fmt.Sprintf(" in %q anchor %d", u.Zone, u.Anchor)
	}
	return text
}

func (c call) String() string {
	var b strings.Builder
	b.WriteString("take")
	if c.Exempt {
		b.WriteString(" without limits")
	}
	if c.Each {
		b.WriteString(" each of")
		if c.Beside > 0 {
			fmt.Fprintf(&b, " %d others,", c.Beside)
		}
	}
	for i, u := range c.Uses {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %v", u)
	}
	if c.Cancel > 0 {
		fmt.Fprintf(&b, "; leave after %v", c.Cancel)
		if c.Deadline {
			b.WriteString(", a deadline")
		}
	}
	if c.Again {
		b.WriteString("; come again")
		if c.Early {
			b.WriteString(", and just before")
		}
		if c.Hasty {
			b.WriteString(", and at once")
		}
	}
	if c.Next > 0 {
		fmt.Fprintf(&b, "; %d more, one after the other", c.Next)
	}
	if c.Meter != nil {
		b.WriteString(c.Meter.String())
	}
	if c.Settle != not || c.Wrong != none {
		fmt.Fprintf(&b, "; after %v settle %s", c.Holds, [...]string{"permits", "at the same", "for less", "for more", "at 0"}[c.Settle])
		if c.Later {
			b.WriteString(" later")
		}
		b.WriteString([...]string{"", ", first without the last limit", ", first in another order", ", first by another limiter", ", twice"}[c.Wrong])
	}
	return b.String()
}

func (r reset) String() string { return fmt.Sprintf("reset rule %d key %d", r.Rule, r.Key) }
func (f forget) String() string {
	text := "all servers forget the scripts"
	if f.Amid != nil {
		text += ", amid " + f.Amid.String()
	}
	return text
}
func (j jump) String() string { return fmt.Sprintf("set the clock by %v", j.By) }

func (t trouble) String() string {
	text := fmt.Sprintf("fault for %v: %v", t.Lasts, t.Kind)
	if t.Busy != nil {
		text += fmt.Sprintf("; %d times before and every %v during it: %v", busyCalls, t.Every, t.Busy)
	}
	return text
}

var unset = regexp.MustCompile(`"\w+":null,?`)

func (c change) String() string {
	text, _ := json.Marshal(c.Rules) // which it can
	if c.Off && c.Switch {
		return "switch all limits off"
	}
	if c.Off {
		return "remove all limits"
	}
	return "override rules " + unset.ReplaceAllString(string(text), "")
}
