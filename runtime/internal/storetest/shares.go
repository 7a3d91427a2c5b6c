package storetest

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A listener is a limiter that hears of shares, and what it has heard.
type listener struct {
	*runtime.Limiter
	heard []string
}

func (k *keeper) listener() *listener {
	l := new(listener)
	l.Limiter = runtime.New(k.Store, runtime.WithLogger(slog.New(slog.DiscardHandler)), runtime.WithObserver(&observe.Observer{Threshold: func(ev observe.ThresholdEvent) {
		l.heard = append(l.heard, fmt.Sprint(ev.Percent, "% of ", ev.Limit, ": ", ev.Used, ", ", ev.ResetAfter, " left"))
	}}))
	return l
}

// reached is an event of a share that a count passes now.
func (k *keeper) reached(percent, used int64) string {
	return fmt.Sprint(percent, "% of ", k.rule.Max, ": ", used, ", ", time.Duration(k.ends()-k.Now())*time.Microsecond, " left")
}

// call has a limiter take a call of a cost, which turns out to cost as much as is said.
func (k *keeper) call(l *runtime.Limiter, cost, settled int64) {
	k.Helper()
	d, err := l.Take(k.Context(), k.limit().WithCost(cost))
	if err == nil {
		err = l.Settle(k.Context(), d, settled)
	}
	if err != nil {
		k.Fatal(err)
	}
}

// sharesAreTold wants a share told once a period, to the first limiter that hears of it when it
// changes a count that is over it, whatever others do that have nobody to hear.
func sharesAreTold(t *trial) {
	for _, k := range t.keepers() {
		for _, k.rule.Keep = range []uint8{0, 3} {
			hears, deaf, other := k.listener(), k.limiter, k.listener()
			var want, others []string
			for range 3 {
				k.call(hears.Limiter, 7, 7)
				k.call(deaf, 1, 1)
				k.Advance(time.Second) // and Redis has the key written anew
				k.call(deaf, 1, 0)
				want = append(want, k.reached(80, 9))
				k.call(hears.Limiter, 1, 1)
				k.Advance(time.Second)
				k.call(deaf, 1, 0)
				others = append(others, k.reached(100, 10))
				k.call(other.Limiter, 1, 0)
				k.call(hears.Limiter, 1, 1)
				k.advanceTo(k.ends())

				// Settled at more than there was, and in the next period.
				k.call(deaf, 2, 2)
				want = append(want, k.reached(80, 12), k.reached(100, 12))
				k.call(hears.Limiter, 1, 10)
				k.advanceTo(k.ends())
				if k.rule.Debt == rule.DebtCarry {
					k.call(deaf, 6, 6)
				}
				k.advanceTo(k.ends())
			}
			for _, l := range []*listener{hears, other} {
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(hears.heard, want) || !slices.Equal(other.heard, others) {
				t.Errorf("%s, keep %d: heard\n%s\nand\n%s\nwant\n%s\nand\n%s", k.rule.Prefix, k.rule.Keep,
					strings.Join(hears.heard, "\n"), strings.Join(other.heard, "\n"), strings.Join(want, "\n"), strings.Join(others, "\n"))
			}
		}
	}
}
