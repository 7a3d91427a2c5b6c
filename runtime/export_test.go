package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Mutation names the variable of the environment that changes the text of
// every script of a store with [Mutate]: a JSON array of the text to replace
// and its replacement.
const Mutation = "RATEGEN_TEST_MUTATION"

var mutation [2]string

func init() {
	if text := os.Getenv(Mutation); text != "" {
		if err := json.Unmarshal([]byte(text), &mutation); err != nil {
			panic(err)
		}
	}
}

func mutate(text string) string {
	if mutation[0] == "" {
		return text
	}
	return strings.ReplaceAll(text, mutation[0], mutation[1])
}

// Change is a [RedisOption] that changes the scripts.
func Change(change func(string) string) RedisOption {
	return func(s *RedisStore) {
		s.library.change = func(text string) string { return change(mutate(text)) }
	}
}

// Mutate is a [RedisOption] that changes the scripts as Mutation says.
func Mutate(s *RedisStore) { s.library.change = mutate }

// SetClock makes the store take its time from clock, in microseconds.
func (s *MemoryStore) SetClock(clock func() int64) { s.clock = clock }

// ClockKey is the Redis key that a store with a clock of its own reads its
// time from, in microseconds.
const ClockKey = "test:clock"

// onClock makes a script take its time from ClockKey, and keys expire by it.
var onClock = strings.NewReplacer(
	"redis.call('TIME')", "{string.match(redis.call('GET', '"+ClockKey+"'), '^(%d+)%d%d%d%d%d%d$'), "+
		"string.match(redis.call('GET', '"+ClockKey+"'), '^%d-0?0?0?0?0?(%d%d?%d?%d?%d?%d?)$')}",
	"(at - clock) / 1000)", "at / 1000)", // of lifetime
	"call('PTTL', key)", "(call('PEXPIRETIME', key) * 1000 - clock) / 1000",
	"'PEXPIRE'", "'PEXPIREAT'",
	"'PX'", "'PXAT'",
)

// SetScript changes the text of the script, and makes it take its time from
// ClockKey.
func (s *RedisStore) SetScript(change func(string) string) {
	s.denials = nil // their time is the process's
	s.library.change = func(text string) string {
		return change(onClock.Replace(mutate(text)))
	}
}

// Keys returns how many keys the store holds.
func (s *MemoryStore) Keys() int { return s.states.Len() }

// A Breaker is what keeps calls from waiting for a Redis that is not there.
type Breaker struct{ b *breaker }

// NewBreaker returns a breaker whose probes may take as long as patience.
func NewBreaker(patience time.Duration, changed func(open bool)) Breaker {
	return Breaker{newBreaker(patience, changed)}
}

// Admit returns how to say what became of a call, or false.
func (b Breaker) Admit() (Admittance, bool) {
	p, ok := b.b.admit()
	return Admittance{b.b, p}, ok
}

// An Admittance is a call that a breaker admitted.
type Admittance struct {
	b *breaker
	p pass
}

func (c Admittance) Succeeded()      { c.b.succeeded(c.p) }
func (c Admittance) Failed()         { c.b.failed(c.p) }
func (c Admittance) Dropped()        { c.b.dropped(c.p) }
func (c Admittance) Learn(err error) { c.b.learn(c.p, err) }

// Waiting returns how many calls wait for a trip to the only server.
func (s *RedisStore) Waiting() int {
	s.terminal.mu.Lock()
	defer s.terminal.mu.Unlock()
	return len(s.terminal.waiting)
}

// Flying returns how many trips to the only server are under way.
func (s *RedisStore) Flying() int {
	s.terminal.mu.Lock()
	defer s.terminal.mu.Unlock()
	return len(s.terminal.trips)
}

// KnownRules returns for how many rules the limiter keeps something, at most.
func (l *Limiter) KnownRules() (most int64) {
	if o := l.overrides.Load(); o != nil {
		most = o.rules.known.Load()
	}
	return max(most, l.events.log.rules.known.Load(), l.shares.known.Load(), l.scaling.rules.known.Load())
}

// TakeLate is Take by a lone caller that is held up, when it is about to leave,
// until its time is over.
func (s *RedisStore) TakeLate(calls []Call) error {
	t := &s.terminal
	pass, _ := t.breaker.admit()
	ticket := newTicket("take", 0, calls, instant())
	ticket.pass, ticket.due = pass, ticket.came+s.timeout
	trip, err := t.join(ticket, true)
	if trip == nil {
		return errors.Join(err, errors.New("the caller is not alone"))
	}
	t.mu.Lock()
	ticket.due = instant()
	t.mu.Unlock()
	t.overdue()
	t.ride(trip)
	return ticket.wait(context.Background(), calls, t.breaker)
}

// Replace has a store on a cluster meet a server for each of clients, one after
// the other on the same slot, and returns how many it has in mind.
func (s *RedisStore) Replace(clients ...*redis.Client) int {
	for _, client := range clients {
		s.nodes.slots[0].Store(s.nodes.of(client))
	}
	s.nodes.mu.Lock()
	defer s.nodes.mu.Unlock()
	return len(s.nodes.terminals)
}

// Has reports whether a store on a cluster has a server in mind.
func (s *RedisStore) Has(client *redis.Client) bool {
	s.nodes.mu.Lock()
	defer s.nodes.mu.Unlock()
	return s.nodes.terminals[client] != nil
}
