package runtime

import (
	"testing"
	"time"
)

// Stores check for sharding only with CheckSharding: some tests count commands.
func init() { checkSharding = false }

// CheckSharding is a [RedisOption] that has the store check whether its server
// shards keys, again after a while if that is not clear.
func CheckSharding(again time.Duration) RedisOption {
	return func(s *RedisStore) {
		s.cfg.Sharding = newShardingCheck(s)
		s.cfg.Sharding.Again = again
	}
}

// ShardingChecks returns how many checks have been made.
func (s *RedisStore) ShardingChecks() int { return s.cfg.Sharding.Made() }

// Change is a [RedisOption] that changes the scripts.
func Change(change func(string) string) RedisOption {
	return func(s *RedisStore) { s.cfg.Library.Change = change }
}

// OwnScripts is a [RedisOption] that has a store share no scripts: which mixtures of
// algorithms have one depends on those that came before.
func OwnScripts(s *RedisStore) {
	s.cfg.Library.Change = func(text string) string { return text }
}

// SetClock makes the store take its time from clock, in microseconds.
func (s *MemoryStore) SetClock(clock func() int64) {
	WithClock(func() time.Time { return time.UnixMicro(clock()) })(s)
	s.states.Clock = s.clock
}

// TellBreaker has the limiters on the store report the circuit breaker of a node.
func (s *RedisStore) TellBreaker(node string, open bool) { s.events().Breaker(node, open) }

// Keys returns how many keys the store holds.
func (s *MemoryStore) Keys() int { return s.states.Len() }

// Waiting returns how many calls wait for a batch.
func (s *RedisStore) Waiting() int {
	waiting, _ := s.router.Load()
	return waiting
}

// InFlight returns how many batches are under way.
func (s *RedisStore) InFlight() int {
	_, batches := s.router.Load()
	return batches
}

// Linger is a [RedisOption] that sets after how long a waiting call has one more batch sent.
func Linger(d time.Duration) RedisOption {
	return func(s *RedisStore) { s.cfg.Linger = d }
}

// KnownRules returns for how many rules the limiter keeps something, at most.
func (l *Limiter) KnownRules() (most int) {
	if o := l.plans.Overrides(); o != nil {
		most = o.Known()
	}
	return max(most, l.events.Log.Known(), l.plans.Factors.Known())
}

// Lines returns how many lines for room there are, and calls in them.
func (l *Limiter) Lines() int {
	lines, calls := l.ledger.Lines.Count()
	return lines + calls
}

// BoundLines bounds how many calls wait in a line.
func (l *Limiter) BoundLines(most int) { l.ledger.Lines.Most = most }

// ChargedAt returns the time that the first limit's charge counts as, or 0.
func (d *Decision) ChargedAt() int64 { return d.chargeTime }

// Leases returns for how many keys the limiter holds or has held a lease, and how many
// units these have left.
func (l *Limiter) Leases() (keys int, units int64) {
	return l.ledger.Leases.Count()
}

// FewestAllocs returns how often f allocates when pooled memory is at hand, which the race
// detector drops at random.
func FewestAllocs(f func()) float64 {
	least := testing.AllocsPerRun(1, f)
	for tries := 0; least > 0 && tries < 1000; tries++ {
		least = min(least, testing.AllocsPerRun(1, f))
	}
	return least
}

// Report has the limiter report to Redis what it has in force.
func (l *Limiter) Report() { l.reporter.Report() }

// ReportByHand has a limiter report by [Limiter.Report] alone.
func (l *Limiter) ReportByHand() { l.reporter.ByHand() }
