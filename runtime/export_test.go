package runtime

import (
	"encoding/json"
	"os"
	"strings"
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

// Mutate is a [RedisOption] that changes the scripts as Mutation says.
func Mutate(s *RedisStore) { s.library.change = mutate }

// SetClock makes the store take its time from clock, in microseconds.
func (s *MemoryStore) SetClock(clock func() int64) { s.clock = clock }

// ClockKey is the Redis key that a store with a clock of its own reads its
// time from, in microseconds.
const ClockKey = "test:clock"

// SetScript changes the text of the script, and makes it take its time from
// ClockKey.
func (s *RedisStore) SetScript(change func(string) string) {
	const clock = "redis.call('TIME')"
	s.denials = nil // their time is the process's
	s.library.change = func(text string) string {
		if !strings.Contains(text, clock) {
			panic("the script does not ask for the time")
		}
		return change(strings.Replace(mutate(text), clock, "{0, redis.call('GET', '"+ClockKey+"')}", 1))
	}
}

// Keys returns how many keys the store holds.
func (s *MemoryStore) Keys() int {
	n := 0
	for i := range s.shards {
		s.shards[i].mu.Lock()
		n += len(s.shards[i].keys)
		s.shards[i].mu.Unlock()
	}
	return n
}
