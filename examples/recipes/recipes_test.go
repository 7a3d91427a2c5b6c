// Package recipes_test plays what the documents in testdata tell of the recipes, on two replicas
// that share a store: in memory and in fake time, and on a real Redis unless a scenario says that
// time passes.
package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/examples/recipes/credits"
	"github.com/rategen/rategen/examples/recipes/gateway"
	"github.com/rategen/rategen/examples/recipes/jobs"
	"github.com/rategen/rategen/examples/recipes/login"
	"github.com/rategen/rategen/examples/recipes/plan"
	"github.com/rategen/rategen/examples/recipes/priority"
	"github.com/rategen/rategen/examples/recipes/quotas"
	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A replica is one process of a site, in which all recipes are served.
type replica struct {
	limiter  *runtime.Limiter
	accounts login.Accounts
	model    gateway.Model
	orders   priority.Orders
	plans    *quotas.Plans
	reports  *quotas.RateLimitedReports
	search   *plan.RateLimitedSearch
	printer  credits.Printer
	worker   jobs.Worker
}

// A site is where a scenario is played.
type site struct {
	*testing.T
	fake     bool // time
	passes   bool // time, in the scenario
	stores   [2]runtime.Store
	replicas [2]*replica
	services
	exceptions map[string]int64 // of quotas
	turn       int              // whose the next call is
}

// open begins, or has both replicas end what they have under way, and begin anew. They refuse calls
// that Redis does not decide, so that none of them is taken for an admitted one.
func (s *site) open() {
	s.close()
	for i := range s.replicas {
		limiter := runtime.New(s.stores[i], runtime.WithLogger(slog.New(slog.DiscardHandler)),
			runtime.WithFailurePolicy(runtime.FailClosed), runtime.WithOverrides(s.overrides(), time.Hour))
		r := &replica{
			limiter:  limiter,
			accounts: login.NewRateLimitedAccounts(&s.services, limiter),
			model:    gateway.NewRateLimitedModel(&s.services, limiter),
			orders:   priority.NewRateLimitedOrders(&s.services, limiter),
			plans:    quotas.NewPlans(s.load, time.Minute, 1),
			reports:  quotas.NewRateLimitedReports(&s.services, limiter),
			search:   plan.NewRateLimitedSearch(&s.services, limiter),
			printer:  credits.NewRateLimitedPrinter(&s.services, limiter),
			worker:   jobs.NewRateLimitedWorker(&s.services, limiter),
		}
		s.replicas[i] = r
	}
}

func (s *site) close() {
	for _, r := range s.replicas {
		if r != nil {
			limittest.OK(s, r.limiter.Close())
		}
	}
}

// overrides are the exceptions of quotas and, where time passes by itself, windows that nothing
// leaves during a test, however slow it is.
func (s *site) overrides() runtime.OverrideSource {
	exceptions := quotas.Exceptions(func(context.Context) (map[string]int64, error) { return s.exceptions, nil })
	return runtime.OverrideFunc(func(ctx context.Context) (runtime.Overrides, error) {
		all, err := exceptions.Overrides(ctx)
		year := 365 * 24 * time.Hour
		for _, name := range []string{"plan.second", "orders.submit", "gateway.requests", "gateway.requests.user"} {
			if !s.fake {
				all.Rules[name] = rule.Override{Window: &year}
			}
		}
		return all, err
	})
}

// TestRecipes plays all scenarios.
func TestRecipes(t *testing.T) {
	for _, s := range document.Read(t, "testdata/*.txt") {
		t.Run(s.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := runtime.NewMemoryStore()
				play(&site{T: t, fake: true, stores: [2]runtime.Store{store, store}}, s)
			})
			if _, passes := s.Arg("time-passes"); passes {
				return
			}
			t.Run("Redis", func(t *testing.T) {
				server, on := redistest.Start(t), &site{T: t}
				for i := range on.stores { // each with connections of its own
					on.stores[i] = runtime.NewRedisStore(server.Client(t, limittest.Unhurried),
						runtime.WithTimeout(time.Minute), runtime.WithRefusalMemory(0))
				}
				play(on, s)
			})
		})
	}
}

func play(s *site, scenario *document.Scenario) {
	world := document.World{"Redis"}
	if s.fake {
		world = document.World{"memory"}
	}
	_, s.passes = scenario.Arg("time-passes")
	s.services = newServices()
	s.open()
	defer s.close()
	for _, l := range scenario.Lines {
		if l.Step == "" {
			continue
		}
		if step, calls, together := strings.Cut(l.Step, " together: "); together {
			l.Answer(s, world, s.together(number(s, step), calls))
			continue
		}
		text, times := document.Repeated(l.Step)
		var answers []string
		for range times {
			answers = append(answers, s.do(strings.Fields(text)))
		}
		l.Answer(s, world, counted(answers))
	}
}

// together has each replica make so many calls, at the same time. A # in them is another text for each.
func (s *site) together(calls int, words string) string {
	var all sync.WaitGroup
	answers := make([][]string, len(s.replicas))
	for i, r := range s.replicas {
		all.Go(func() {
			for n := range calls {
				own := strings.ReplaceAll(words, "#", fmt.Sprint(i, "-", n))
				answers[i] = append(answers[i], outcome(s.call(r, strings.Fields(own))))
			}
		})
	}
	all.Wait()
	return counted(slices.Concat(answers...))
}

// counted says how often there was each answer, if there is more than one.
func counted(answers []string) string {
	if len(answers) == 1 || slices.Max(answers) == "" {
		return answers[0]
	}
	count := map[string]int{}
	for _, a := range answers {
		count[a]++
	}
	var all []string
	for _, a := range slices.Compact(slices.Sorted(slices.Values(answers))) {
		all = append(all, fmt.Sprint(count[a], " ", a))
	}
	return strings.Join(all, ", ")
}

// outcome says what became of a call.
func outcome(err error) string {
	limited, ok := errors.AsType[*runtime.LimitedError](err)
	if !ok {
		if err == nil {
			return "admitted"
		}
		return err.Error()
	}
	if limited.Blocked {
		return "blocked by " + limited.Rule
	}
	return "refused by " + limited.Rule
}

// until is outcome, with the time at which a refusal ends where time passes.
func (s *site) until(err error) string {
	limited, ok := errors.AsType[*runtime.LimitedError](err)
	if !ok || !s.passes {
		return outcome(err)
	}
	return outcome(err) + " until " + time.Now().Add(limited.RetryAfter).UTC().Format(time.RFC3339)
}
