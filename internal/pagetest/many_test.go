package pagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// TestManyRules wants a page of 200 rules to have the store and the look-up near, in
// windows from a telephone to a wide screen, and names to break at their dots.
func TestManyRules(t *testing.T) {
	t.Parallel()
	b := withHands(t)
	p := start(t)
	for i := range 200 {
		p.limiter.Register(&runtime.Rule{Name: fmt.Sprintf("warehouse.inventory.ReservationService.Reserve%03d", i), Max: 1, Window: time.Hour})
	}
	b.visit(p.url, 25)
	for width, most := range map[int]int{360: 6500, 1280: 2800, 1920: 1200} {
		b.resize(width, 900)
		if y := eval[float64](b, `document.getElementById("redis").getBoundingClientRect().top + window.scrollY`); int(y) > most {
			t.Errorf("in a window of %d pixels the store is %v down, want %d at most", width, y, most)
		}
		if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > width {
			t.Errorf("in a window of %d pixels the page is %d wide", width, wide)
		}
	}
	b.resize(360, 900)
	if n := eval[int](b, `[...document.querySelectorAll("#rule-rows .name")].filter((e) => e.querySelectorAll("wbr").length !== e.innerText.split(".").length - 1).length`); n > 0 {
		t.Errorf("%d names do not break at their dots", n)
	}
	b.click("Show more")
	b.wait("more rules", `document.querySelectorAll("#rule-rows > tr").length === 50`)
	b.quiet("all of it")
}
