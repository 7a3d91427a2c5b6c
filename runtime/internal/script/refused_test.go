package script_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// A deed is something that is done to a key, of which Redis may refuse a command.
type deed struct {
	name string
	// prepare brings the key into the state that the deed is done in, and returns it. Do
	// may be called again, with again true.
	prepare func(s *keyState) (do func(again bool) error)
	skip    func(r *runtime.Rule) bool
}

// A keyState is a key that deeds are done to.
type keyState struct {
	*testing.T
	documents.Subject
	rule *runtime.Rule
	key  string
}

func (s *keyState) charge(cost int64) rawstore.Charge { return chargeOf(s.rule, s.key, cost) }

func (s *keyState) take(cost int64) rawstore.Charge {
	s.Helper()
	c := must(s.T, s.Store, take, []rawstore.Call{{Charges: []rawstore.Charge{s.charge(cost)}}})
	if !c.Allowed {
		s.Fatalf("%s is refused: %+v", s.key, c.Result)
	}
	return c
}

// now returns what the key holds, as calls see it.
func (s *keyState) now() rawstore.Result {
	s.Helper()
	return must(s.T, s.Store, peek, single(s.rule, s.key, 1)).Result
}

func (s *keyState) try(do storetest.Operation, c rawstore.Charge) error {
	_, err := storetest.Try(s.Store, do, []rawstore.Call{{Charges: []rawstore.Charge{c}}})
	return err
}

// settles returns what settles a charge at a cost.
func (s *keyState) settles(c rawstore.Charge, cost int64) func(bool) error {
	return func(again bool) error {
		c := c
		c.Settled = cost
		if again && s.rule.Reserve > 0 {
			c.Mark = terms.Again
		}
		return rawstore.Wrap(s.Store).Settle(s.Context(), []rawstore.Charge{c})
	}
}

func (s *keyState) takes(cost int64) func(bool) error {
	return func(bool) error { return s.try(take, s.charge(cost)) }
}

// period returns how long charges of a rule count.
func period(r *runtime.Rule) time.Duration {
	if r.Period != rule.NoPeriod {
		return 24 * time.Hour
	}
	return r.Window
}

// writing are the commands that change a key, or when it expires.
var writing = []string{"zadd", "zrem", "zremrangebyrank", "append", "set", "setrange", "unlink", "pexpire", "pexpireat"}

func reserves(r *runtime.Rule) bool { return r.Reserve > 0 }

func deeds() (all []deed) {
	never := func(*runtime.Rule) bool { return false }
	without := func(r *runtime.Rule) bool { return !reserves(r) }
	all = []deed{
		{"first take", func(s *keyState) func(bool) error { return s.takes(2) }, never},
		{"take", func(s *keyState) func(bool) error {
			s.take(3)
			return s.takes(2)
		}, never},
		{"take when all has left", func(s *keyState) func(bool) error {
			s.take(3)
			s.Advance(period(s.rule) * 3 / 2)
			return s.takes(2)
		}, never},
		{"take beside what has lapsed", func(s *keyState) func(bool) error {
			s.take(3)
			s.Advance(s.rule.Reserve / 2)
			s.take(4)
			s.Advance(s.rule.Reserve/2 + time.Second)
			return s.takes(2)
		}, without},
		{"take in a new period, with a debt", func(s *keyState) func(bool) error {
			c := s.take(5)
			ok(s.T, s.settles(c, 60)(false))
			s.Advance(period(s.rule))
			return s.takes(2)
		}, without},
		{"renewal", func(s *keyState) func(bool) error {
			c := s.take(5)
			s.Advance(time.Second)
			return func(bool) error { return s.try(renew, c) }
		}, func(r *runtime.Rule) bool { return !reserves(r) && r.Algorithm != runtime.Concurrency }},
	}
	for _, cost := range []int64{0, 2, 5, 9} {
		all = append(all, deed{fmt.Sprint("settling at ", cost), func(s *keyState) func(bool) error {
			s.take(3)
			return s.settles(s.take(5), cost)
		}, never}, deed{fmt.Sprint("settling beside what has lapsed at ", cost), func(s *keyState) func(bool) error {
			s.take(3)
			s.Advance(s.rule.Reserve / 2)
			c := s.take(5)
			s.Advance(s.rule.Reserve/2 + time.Second)
			return s.settles(c, cost)
		}, without}, deed{fmt.Sprint("settling what has lapsed at ", cost), func(s *keyState) func(bool) error {
			s.take(3)
			c := s.take(5)
			s.Advance(s.rule.Reserve + time.Second)
			settle := s.settles(c, cost)
			return func(bool) error { return settle(false) } // which charges what is not there
		}, without})
	}
	return all
}

// TestRefusedCommands forbids the user one by one the commands by which a deed writes. A deed
// that fails has changed nothing, or it is done; and when it is tried again with all rights,
// the key is as if nothing had been refused.
func TestRefusedCommands(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	user := server.ClientAs(t, "~*", "+@all")
	for name, rule := range storetest.Ways() {
		t.Run(name, func(t *testing.T) {
			rule.Max, rule.Burst, rule.Wait = 50, 0, 0
			if rule.Window > 0 {
				rule.Window = time.Hour
			}
			if reserves(rule) {
				rule.Reserve = 10 * time.Minute
			}
			store := timed(user, nil)
			for _, d := range deeds() {
				if !d.skip(rule) {
					refuseEach(t, admin, store, rule, d)
				}
			}
		})
	}
}

// refuseEach does a deed once with all rights, and then once without each.
func refuseEach(t *testing.T, admin *redis.Client, store runtime.Store, rule *runtime.Rule, d deed) {
	n := 0
	begin := func() (*keyState, func(bool) error) {
		n++
		s := &keyState{t, onTime(t, admin, store), rule, fmt.Sprint(documents.Prefix(t), d.name, n)}
		return s, d.prepare(s)
	}
	s, do := begin()
	before := s.now()
	calls := executedBy(t, admin, func() { ok(t, do(false)) })
	after := s.now()
	for _, command := range slices.Sorted(maps.Keys(calls)) {
		if !slices.Contains(writing, command) {
			continue
		}
		s, do := begin()
		what := fmt.Sprintf("%s without %s", d.name, strings.ToUpper(command))
		ok(t, admin.Do(t.Context(), "ACL", "SETUSER", "limiter", "-"+command).Err())
		err := do(false)
		ok(t, admin.Do(t.Context(), "ACL", "SETUSER", "limiter", "+"+command).Err())
		same := func(r rawstore.Result) bool { return cmp.Equal(s.now(), r, cmp.Comparer(alike)) }
		done := same(after)
		if !done && (err == nil || !same(before)) {
			t.Errorf("%s: %v, and then %+v, want %+v or %+v", what, err, s.now(), before, after)
		}
		if err == nil || done && strings.HasPrefix(command, "pexpire") && !reserves(rule) {
			continue // what was charged would be charged again
		}
		if err := do(true); err != nil || !same(after) {
			t.Errorf("%s, and again: %v, and then %+v, want %+v", what, err, s.now(), after)
		}
	}
}

// alike reports whether results say the same, but for numbers that tell charges apart.
func alike(a, b rawstore.Result) bool {
	a.At, a.Mark = b.At, b.Mark
	return cmp.Equal(a, b)
}
