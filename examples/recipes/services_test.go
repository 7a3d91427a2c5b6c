package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/examples/recipes/credits"
	"github.com/rategen/rategen/examples/recipes/gateway"
	"github.com/rategen/rategen/examples/recipes/jobs"
	"github.com/rategen/rategen/examples/recipes/login"
	"github.com/rategen/rategen/examples/recipes/plan"
	"github.com/rategen/rategen/examples/recipes/priority"
	"github.com/rategen/rategen/examples/recipes/quotas"
)

// services are what the replicas of a site have in common below their limits.
type services struct {
	fails    atomic.Bool      // whether calls fail, and the database is away
	looked   atomic.Int64     // passwords
	database map[string]int64 // the plans of quotas
	queries  atomic.Int64     // that it was asked
	pause    time.Duration    // of the model before each chunk, where testing/synctest makes it a short one
	breaks   int              // chunks after which the model fails, if above 0
	made     atomic.Int64     // chunks

	mu            sync.Mutex
	spent         map[string]int64 // on the model, by users and tenants
	running, most map[string]int   // jobs by tenant
	end           chan struct{}
	jobs          sync.WaitGroup
}

func newServices() services {
	return services{spent: map[string]int64{}, running: map[string]int{}, most: map[string]int{}, end: make(chan struct{})}
}

var errFails = errors.New("failed")

func (s *services) failure() error {
	if s.fails.Load() {
		return errFails
	}
	return nil
}

func (s *services) LogIn(_ context.Context, _, password string) (string, error) {
	s.looked.Add(1)
	if password != "right" {
		return "", login.ErrWrong
	}
	return "token", s.failure()
}

func (s *services) Submit(context.Context, priority.Request) error { return s.failure() }

func (s *services) Export(context.Context, quotas.Tenant, string) ([]byte, error) {
	return nil, s.failure()
}

func (s *services) Find(context.Context, plan.Customer, string) ([]string, error) {
	return nil, s.failure()
}

func (s *services) Print(context.Context, credits.Account, int) error { return s.failure() }

// load is the database of plans.
func (s *services) load(_ context.Context, id string) (quotas.Tenant, error) {
	s.queries.Add(1)
	perHour, is := s.database[id]
	if !is {
		return quotas.Tenant{}, errors.New("no such tenant")
	}
	return quotas.Tenant{ID: id, PerHour: perHour}, s.failure()
}

// Ask answers with chunks of one token, until it is stopped.
func (s *services) Ask(_ context.Context, c gateway.Caller, prompt string) iter.Seq2[gateway.Chunk, error] {
	return func(yield func(gateway.Chunk, error) bool) {
		s.spend(c, 300*int64(1+len(prompt)/4))
		for n := 1; ; n++ {
			time.Sleep(s.pause)
			if n-1 == s.breaks && s.breaks > 0 {
				yield(gateway.Chunk{}, errFails)
				return
			}
			s.made.Add(1)
			if !yield(gateway.Chunk{Text: "word ", Tokens: 1}, nil) {
				return
			}
		}
	}
}

func (s *services) spend(c gateway.Caller, cost int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spent[c.User] += cost
	s.spent[c.Tenant] += cost
}

// Run runs a job until a scenario ends one.
func (s *services) Run(_ context.Context, job jobs.Job) error {
	count := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, of := range []string{job.Tenant, "all"} {
			s.running[of] += n
			s.most[of] = max(s.most[of], s.running[of])
		}
	}
	count(1)
	<-s.end
	count(-1)
	return nil
}

// jobCounts says how many jobs of each tenant there are.
func (s *services) jobCounts(of map[string]int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, tenant := range slices.Sorted(maps.Keys(of)) {
		all = append(all, fmt.Sprintf("%d of %s", of[tenant], tenant))
	}
	return strings.Join(all, ", ")
}
