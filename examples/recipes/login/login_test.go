package login

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

var errAway = errors.New("database is away")

// passwords are accounts that count how often they are asked. One of them is in a
// database that is away.
type passwords struct{ checked atomic.Int64 }

func (p *passwords) LogIn(_ context.Context, user, password string) (string, error) {
	p.checked.Add(1)
	if account(user) == "away" {
		return "", errAway
	}
	if password != "right" {
		return "", ErrWrong
	}
	return "token", nil
}

// A site is two replicas.
type site struct {
	*testing.T
	plain    passwords
	limiters [2]*runtime.Limiter
	replicas []Accounts
}

func newSite(t *testing.T) *site {
	s := &site{T: t, limiters: replica.Limiters(t)}
	for _, limiter := range s.limiters {
		s.replicas = append(s.replicas, NewRateLimitedAccounts(&s.plain, limiter))
	}
	return s
}

func from(address string) context.Context {
	return ratehttp.WithClientIP(context.Background(), netip.MustParseAddr(address))
}

// left returns what is left of both limits.
func (s *site) left(user, address string) (ofUser, ofAddress int64) {
	ofUser = limittest.Left(s, s.limiters[0], accountsLogInLimit.Limit(runtime.NewKey().AddString(account(user))))
	return ofUser, limittest.Left(s, s.limiters[0], accountsLogInLimit2.Limit(runtime.NewKey().AddString(ratehttp.ClientIP(from(address)))))
}

// blocked has both replicas guess, and wants a rule to refuse all but so many tries of each.
func (s *site) blocked(rule string, tries, want int, user func(replica Accounts, try int) string, address string) {
	s.Helper()
	refused := 0
	for _, n := range replica.All(s.replicas, func(r Accounts) (n int) {
		for i := range tries {
			_, err := r.LogIn(from(address), user(r, i), "guess")
			var limited *runtime.LimitedError
			if errors.As(err, &limited) {
				n++
				if limited.Rule != rule || !limited.Blocked || limited.RetryAfter > time.Hour || limited.RetryAfter < 30*time.Minute {
					s.Errorf("%+v, want a block by %s", limited, rule)
				}
			} else if !errors.Is(err, ErrWrong) {
				s.Error(err)
			}
		}
		return n
	}) {
		refused += n
	}
	if checked := int(s.plain.checked.Load()); checked != want || refused != 2*tries-want {
		s.Errorf("%d passwords looked at, %d tries blocked, want %d and %d", checked, refused, want, 2*tries-want)
	}
}

// Of all that is tried on two replicas five passwords of a user are looked at. Then
// the user is blocked, and nothing more is charged to the address, until somebody
// unlocks the user.
func TestUser(t *testing.T) {
	s := newSite(t)
	s.blocked("login.user", 40, 5, func(Accounts, int) string { return "ann" }, "203.0.113.7")
	for i, spelling := range []string{"ann", " ANN"} {
		if _, err := s.replicas[i].LogIn(from("198.51.100.1"), spelling, "right"); !errors.Is(err, runtime.ErrLimited) {
			t.Errorf("%q with the right password: %v, want a block", spelling, err)
		}
	}
	if _, address := s.left("ann", "203.0.113.7"); address != 45 {
		t.Errorf("%d left to the address, want 45", address)
	}
	limittest.OK(t, Unlock(t.Context(), s.limiters[0], "Ann"))
	if user, _ := s.left("ann", "203.0.113.7"); user != 5 {
		t.Errorf("unlocked: %d tries left, want 5", user)
	}
	for _, r := range s.replicas { // the other replica remembers the block for a moment
		limittest.Eventually(t, "the user is let in", func() bool {
			_, err := r.LogIn(from("198.51.100.1"), "ann", "right")
			return err == nil
		})
	}
}

// An address that tries many users is blocked, and those users are not.
func TestAddress(t *testing.T) {
	s := newSite(t)
	s.blocked("login.address", 60, 50, func(r Accounts, i int) string { return fmt.Sprintf("user%t-%d", r == s.replicas[0], i) }, "2001:db8::1")
	for _, r := range s.replicas {
		if _, err := r.LogIn(from("2001:db8:0:100::1"), "usertrue-0", "right"); err != nil {
			t.Errorf("from elsewhere: %v, want a log-in", err)
		}
	}
}

// What is no wrong password is given back, on whatever replica it was.
func TestOnlyFailuresCount(t *testing.T) {
	s := newSite(t)
	const address = "203.0.113.7"
	settled := func(user string, want int64) {
		t.Helper()
		limittest.Eventually(t, "what is no failure is given back", func() bool {
			ofUser, ofAddress := s.left(user, address)
			return ofUser == want && ofAddress == 50-(5-want)
		})
	}
	in := func(r Accounts, user, password string, want error) {
		t.Helper()
		if _, err := r.LogIn(from(address), user, password); !errors.Is(err, want) {
			t.Fatalf("%s: %v, want %v", user, err, want)
		}
	}
	for i := range 12 {
		in(s.replicas[i%2], "bea", "right", nil)
		settled("bea", 5)
		in(s.replicas[i%2], "away", "right", errAway)
		settled("away", 5)
	}
	for range 4 {
		in(s.replicas[0], "bea", "wrong", ErrWrong)
	}
	in(s.replicas[1], "bea", "right", nil)
	settled("bea", 1) // a log-in forgives nothing
}
