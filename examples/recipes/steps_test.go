package recipes_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
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
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// Arguments are what stands behind the name of a step, as NAME=VALUE. In a value ~ stands for a blank.
type arguments struct {
	testing.TB
	values map[string]string
}

func (s *site) arguments(words []string) arguments {
	a := arguments{s, map[string]string{}}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		a.values[name] = strings.ReplaceAll(value, "~", " ")
	}
	return a
}

// number returns 0 if it is not said.
func (a arguments) number(name string) int64 {
	if a.values[name] == "" {
		return 0
	}
	return int64(number(a, a.values[name]))
}

func number(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	limittest.OK(t, err)
	return n
}

func (a arguments) customer() plan.Customer {
	return plan.Customer{ID: a.values["id"], Monthly: a.number("monthly"), PerSecond: a.number("second"),
		Zone: a.values["zone"], BillingDay: int(a.number("day"))}
}

// call makes a call of a recipe by a replica.
func (s *site) call(r *replica, words []string) error {
	a, ctx := s.arguments(words[1:]), context.Background()
	switch words[0] {
	case "login":
		address, err := netip.ParseAddr(a.values["from"])
		limittest.OK(s, err)
		_, err = r.accounts.LogIn(ratehttp.WithClientIP(ctx, address), a.values["user"], a.values["password"])
		return err
	case "submit":
		return r.orders.Submit(ctx, priority.Request{Tenant: a.values["tenant"], Priority: priority.Priority(a.number("priority"))})
	case "export":
		_, err := r.reports.Export(ctx, r.plans.Tenant(ctx, a.values["tenant"]), "all")
		return err
	case "find":
		_, err := r.search.Find(ctx, a.customer(), "x")
		return err
	case "print":
		return r.printer.Print(ctx, credits.Account{ID: a.values["id"], Batch: int(a.number("batch")), Bought: a.number("bought")}, 1)
	case "read":
		_, err := s.read(r, a)
		return err
	}
	s.Fatalf("no step %q", words)
	return nil
}

// read reads an answer of the model, of at most so many tokens, and returns how many it had.
func (s *site) read(r *replica, a arguments) (tokens int64, err error) {
	c := gateway.Caller{Tenant: a.values["tenant"], User: a.values["user"], Budget: a.number("budget"), Share: a.number("share")}
	for chunk, err := range r.model.Ask(context.Background(), c, strings.Repeat("word", int(a.number("words")))) {
		if err != nil {
			return tokens, err
		}
		s.spend(c, 1500*chunk.Tokens)
		if tokens += chunk.Tokens; tokens == a.number("most") {
			break
		}
	}
	return tokens, nil
}

// balance compares what is charged to a user and to its tenant with what their requests and answers cost.
func (s *site) balance(a arguments) string {
	s.open() // when nobody holds anything
	user := a.number("share") - s.left("gateway.money.user", a.values["tenant"]+","+a.values["user"], a.number("share"))
	tenant := a.number("budget") - s.left("gateway.money", a.values["tenant"], a.number("budget"))
	if ofUser, ofTenant := s.spent[a.values["user"]], s.spent[a.values["tenant"]]; user != ofUser || tenant != ofTenant {
		return fmt.Sprintf("charged %d and %d, for what costs %d and %d", user, tenant, ofUser, ofTenant)
	}
	return fmt.Sprintf("exact; less than a token left to the user: %t, to the tenant: %t", a.number("share")-user < 1800, a.number("budget")-tenant < 1800)
}

// do does a step, by the replicas in turn, and returns its answer.
func (s *site) do(words []string) string {
	s.turn++
	r, a := s.replicas[s.turn%2], s.arguments(words[1:])
	ctx := context.Background()
	switch words[0] {
	case "read":
		begin, before := time.Now(), s.made.Load()
		tokens, err := s.read(r, a)
		return fmt.Sprintf("%d tokens of %d in %v, %s", tokens, s.made.Load()-before, time.Since(begin).Round(time.Second), s.until(err))
	case "looked": // how many passwords were looked at since the last time
		return fmt.Sprint(s.looked.Swap(0))
	case "unlock":
		limittest.OK(s, login.Unlock(ctx, r.limiter, a.values["user"]))
	case "left": // of a rule for a key, whose parts a comma divides
		s.open() // when what is settled later is
		return fmt.Sprint(s.left(a.values["rule"], a.values["key"], a.number("max")))
	case "balance":
		return s.balance(a)
	case "usage":
		s.open()
		usages, err := s.replicas[0].search.FindUsage(ctx, a.customer())
		limittest.OK(s, err)
		return s.usage(usages)
	case "quota": // as its handler answers a tenant
		left := quotas.Left(r.reports, func(*http.Request) quotas.Tenant { return r.plans.Tenant(ctx, a.values["tenant"]) })
		w := httptest.NewRecorder()
		left.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/quota", nil))
		return w.Header().Get("RateLimit-Policy") + ", " + w.Header().Get("RateLimit")
	case "plan": // as the first replica knows it
		before := s.queries.Load()
		perHour := s.replicas[0].plans.Tenant(ctx, a.values["tenant"]).PerHour
		return fmt.Sprintf("%d an hour after %d queries", perHour, s.queries.Load()-before)
	case "strangers": // ask the first replica
		for i := range number(s, words[1]) {
			s.replicas[0].plans.Tenant(ctx, fmt.Sprint("stranger", i))
		}
	case "database", "exceptions": // TENANT=N
		of := map[string]int64{}
		for tenant := range a.values {
			of[tenant] = a.number(tenant)
		}
		if words[0] == "database" {
			s.database = of
			return ""
		}
		s.exceptions = maps.Clone(of)
		s.open()
	case "fails", "works":
		s.fails.Store(words[0] == "fails")
	case "model": // pauses before each chunk, and fails after some
		s.pause, _ = time.ParseDuration(a.values["pause"])
		s.breaks = int(a.number("breaks"))
	case "later":
		d, err := document.Duration(words[1])
		limittest.OK(s, err)
		time.Sleep(d)
	case "begin", "end": // jobs
		for range a.number("jobs") {
			s.jobs.Go(func() { limittest.OK(s, r.worker.Run(ctx, jobs.Job{Tenant: a.values["tenant"]})) })
		}
		if words[0] == "end" {
			s.end <- struct{}{}
		}
		synctest.Wait()
	case "running":
		return s.jobCounts(s.running)
	case "most": // were running at a time
		return s.jobCounts(s.most)
	default:
		return s.until(s.call(r, words))
	}
	return ""
}

// left returns what is left of a rule for a key, of a max if the calls bring one.
func (s *site) left(rule, parts string, most int64) int64 {
	key := runtime.NewKey()
	for part := range strings.SplitSeq(parts, ",") {
		key.AddString(part)
	}
	all := s.replicas[0].limiter.Rules()
	limit := all[slices.IndexFunc(all, func(r observe.RuleState) bool { return r.Rule.Name == rule })].Rule.Limit(key)
	if most > 0 {
		limit = limit.WithMax(most)
	}
	return limittest.Left(s, s.replicas[0].limiter, limit)
}

// usage says what is left, and where time passes what was used in periods that are over.
func (s *site) usage(usages []runtime.Usage) string {
	var all []string
	for _, u := range usages {
		text := fmt.Sprint(u.Remaining, " left")
		for _, p := range u.Past {
			if !s.passes {
				continue
			}
			text += fmt.Sprintf(", %d used %s to %s", p.Used, p.Start.Format(time.DateOnly), p.End.Format(time.DateOnly))
		}
		all = append(all, text)
	}
	return strings.Join(all, " | ")
}
