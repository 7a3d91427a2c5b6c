package findings

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime/observe"
)

// TestPast has findings end: one by itself, which comes again, one when it is removed, and more than are remembered.
func TestPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l List
		begin := time.Now()
		fading, lasting := Finding{Finding: observe.Finding{Code: "a", Rule: "r"}, Fades: true}, Finding{Finding: observe.Finding{Code: "b"}}
		for range 3 {
			l.Add(fading)
			l.Add(lasting)
			time.Sleep(fades / 2)
		}
		if all := l.All(); len(all) != 2 || all[0].Times != 3 || !all[0].Until.IsZero() || len(l.Past()) != 0 {
			t.Fatalf("%+v", all)
		}
		time.Sleep(fades)
		if !l.Add(fading) {
			t.Error("what comes again is not new")
		}
		l.Remove("b", func(Finding) bool { return true })
		past := l.Past()
		if len(past) != 2 || past[0].Code != "a" || past[0].Until.Sub(begin) != fades || past[1].Code != "b" || past[1].Until.Sub(begin) != 5*fades/2 {
			t.Errorf("%+v", past)
		}
		if all := l.All(); len(all) != 1 || all[0].Times != 1 || all[0].Since.Sub(begin) != 5*fades/2 {
			t.Errorf("%+v", all)
		}
		for i := range 2 * mostOver {
			l.Add(Finding{Finding: observe.Finding{Code: "c", Rule: fmt.Sprint(i)}})
			l.Remove("c", func(Finding) bool { return true })
		}
		if past := l.Past(); len(past) != mostOver || past[mostOver-1].Rule != fmt.Sprint(2*mostOver-1) {
			t.Errorf("%d, %+v", len(past), past[0])
		}
	})
}
