package runtime

import (
	"log/slog"
	"os"
	"strconv"
	"strings"
)

// checkReplicas warns of a store in memory in a service that is known to run as
// several processes: each of them admits as much as a rule does.
func (l *Limiter) checkReplicas() {
	if _, ok := l.store.(*MemoryStore); ok && (l.replicas > 1 || isReplica(os.Getenv)) {
		l.events.warn("limits are counted in memory, and this service has several replicas: each admits as much as its rules say",
			slog.String("code", "memory_store_replicas"),
			slog.String("help", "use a RedisStore, or divide the max of each rule by the number of replicas"))
	}
}

// isReplica reports whether the platform has numbered this process as one of several:
// Cloud Foundry and Nomad count from 0, Heroku's web.1 from 1.
func isReplica(getenv func(string) string) bool {
	for _, number := range [...]struct{ env, prefix, first string }{
		{"CF_INSTANCE_INDEX", "", "0"}, {"NOMAD_ALLOC_INDEX", "", "0"}, {"DYNO", "web.", "1"},
	} {
		if text, ok := strings.CutPrefix(getenv(number.env), number.prefix); ok && text != number.first {
			if _, err := strconv.ParseUint(text, 10, 32); err == nil {
				return true
			}
		}
	}
	return false
}
