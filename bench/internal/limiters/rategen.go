package limiters

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/raterueidis"
	"github.com/rategen/rategen/runtime/rule"
)

// A way is one way of rategen's to count.
type way struct {
	name string
	rule runtime.Rule // its prefix is rategen's, if it has none
}

var ways = []way{
	{"sliding-log zset", runtime.Rule{}},
	{"sliding-log packed", runtime.Rule{Storage: runtime.StoragePacked}},
	{"sliding-counter", runtime.Rule{Algorithm: runtime.SlidingCounter}},
	{"fixed-window", runtime.Rule{Algorithm: runtime.FixedWindow}},
	{"token-bucket", runtime.Rule{Algorithm: runtime.TokenBucket}},
	{"concurrency", runtime.Rule{Algorithm: runtime.Concurrency}},
}

// The names of rategen's limiters.
const (
	RategenFixed  = "rategen fixed-window"
	RategenBucket = "rategen token-bucket"
	RategenShares = "rategen token-bucket, shares of one key"
	RategenLease  = "rategen token-bucket lease=50ms window=1s"
)

// leaseWindow is the window of the limiter that leases, whatever the limits of
// the case: a process holds units for a part of it.
const leaseWindow = time.Second

// Rategen returns rategen's own limiters over Redis.
func Rategen() []Limiter {
	var all []Limiter
	for _, w := range ways {
		all = append(all, Limiter{
			Name: "rategen " + w.name, Own: true, Recalls: true, ByHand: w.byHand(),
			New: func(s Server, l Limits) (load.Take, error) { return w.ask(s.limiter(), l), nil },
		})
	}
	for _, w := range ways {
		if w.rule.Algorithm != runtime.TokenBucket && w.rule.Algorithm != runtime.FixedWindow {
			continue
		}
		w.name += " over rueidis"
		w.rule.Prefix = "rueidis:"
		all = append(all, Limiter{
			Name: "rategen " + w.name, Own: true, Recalls: true, ByHand: OverRueidis,
			New: func(s Server, l Limits) (load.Take, error) {
				store, err := raterueidis.NewStore(s.Rueidis, rueidisOption(s.Addr), runtime.WithTimeout(s.Timeout))
				if err != nil {
					return nil, err
				}
				return w.ask(quiet(store), l), nil
			},
		})
	}
	return all
}

// refunded is what the limiter is called whose calls turn out not to count.
const refunded = "refunded"

// Budgets returns rategen's fixed windows that are budgets, for many keys that have room: a
// period of the calendar, calls that are refunded, and what is reserved while calls run,
// which are settled.
func Budgets() []Limiter {
	of := func(name string, set func(*runtime.Rule)) Limiter {
		return Limiter{Name: RategenFixed + " " + name, Own: true, New: func(s Server, l Limits) (load.Take, error) {
			declared := way{name: name, rule: runtime.Rule{Algorithm: runtime.FixedWindow}}.ruleFor(l)
			set(declared)
			if declared.Reserve > 0 {
				return askAndSettle(s.limiter(), declared), nil
			}
			if name == refunded && l.roomy() {
				return askAndSettle(s.limiter(), declared, 0), nil
			}
			return ask(s.limiter(), declared), nil
		}}
	}
	return []Limiter{
		of("window=month", func(r *runtime.Rule) {
			r.Prefix, r.Window, r.Period, r.Zone = "monthly:", 0, rule.Month, "Europe/Berlin"
		}),
		of(refunded, func(r *runtime.Rule) { r.Prefix = "refunded:" }),
		of("reserve=1m, settled", func(r *runtime.Rule) { r.Prefix, r.Reserve = "reserve:", time.Minute }),
	}
}

// Divided returns rategen's token bucket with one key for all calls, which shares divide among what
// others have as keys.
func Divided() []Limiter {
	return []Limiter{{Name: RategenShares, Own: true, New: func(s Server, _ Limits) (load.Take, error) {
		w := way{name: "shares", rule: runtime.Rule{Algorithm: runtime.TokenBucket, Headroom: -1, Prefix: "shares:"}}
		limiter, rule := s.limiter(), w.ruleFor(HotRoom)
		return func(ctx context.Context, key string) load.Answer {
			return answer(limiter.Take(ctx, rule.Limit(nil).WithShare(runtime.NewKey().AddString(key), 1)))
		}, nil
	}}}
}

// Leased returns rategen's limiters for one key that has all calls. Their max is that of the limits.
func Leased() []Limiter {
	return []Limiter{{Name: RategenLease, Own: true, Leases: true, New: func(s Server, l Limits) (load.Take, error) {
		rule := way{name: "lease", rule: runtime.Rule{Algorithm: runtime.TokenBucket}}.ruleFor(l)
		rule.Window, rule.Lease = leaseWindow, 50*time.Millisecond
		return ask(s.limiter(), rule), nil
	}}}
}

// ask asks about calls on one of the limits. Permits come back where there is
// room, unless a key is to be filled: nobody would ask for so many at a time.
func (w way) ask(limiter *runtime.Limiter, l Limits) load.Take {
	rule := w.ruleFor(l)
	if rule.Algorithm == runtime.Concurrency && l.roomy() {
		return askAndSettle(limiter, rule)
	}
	return ask(limiter, rule)
}

// ruleFor returns the way's rule for one of the limits.
func (w way) ruleFor(l Limits) *runtime.Rule {
	limit := l.Level
	if w.rule.Algorithm == runtime.SlidingLog || w.rule.Algorithm == runtime.SlidingCounter {
		limit = l.Log
	}
	if w.rule.Algorithm == runtime.Concurrency && l.Level.Max > rule.MaxLog {
		limit.Max = rule.MaxLog
	}
	r := w.rule
	r.Name, r.Prefix, r.Window, r.Max = w.name, cmp.Or(r.Prefix, "rategen:"), limit.Window, limit.Max
	return &r
}

// quiet returns a limiter on store whose lines about refusals go nowhere.
func quiet(store runtime.Store) *runtime.Limiter {
	return runtime.New(store, runtime.WithLogger(slog.New(slog.DiscardHandler)))
}

// ask asks about calls by a rule as hand-written code does.
func ask(limiter *runtime.Limiter, rule *runtime.Rule) load.Take {
	return func(ctx context.Context, key string) load.Answer {
		return answer(limiter.Take(ctx, rule.Limit(runtime.NewKey().AddString(key))))
	}
}

// askAndSettle asks about calls that end at once, and return what they held or cost so much.
func askAndSettle(limiter *runtime.Limiter, rule *runtime.Rule, cost ...int64) load.Take {
	return func(ctx context.Context, key string) load.Answer {
		decision, err := limiter.Take(ctx, rule.Limit(runtime.NewKey().AddString(key)))
		limiter.SettleLater(ctx, decision, cost...)
		return answer(decision, err)
	}
}

func answer(decision runtime.Decision, err error) load.Answer {
	switch decision.Source {
	case rule.SourceStore, rule.SourceLease:
		if err != nil {
			return load.Refused
		}
		return load.Admitted
	case rule.SourceRecalled:
		return load.Recalled
	}
	return load.Failed
}
