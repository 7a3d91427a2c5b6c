package runtime

import "log/slog"

// checkReplicas warns of a store in memory in a service that says it runs as several
// processes: each of them admits as much as a rule does.
func (l *Limiter) checkReplicas() {
	if _, ok := l.store.(*MemoryStore); ok && l.replicas > 1 {
		l.events.warn("limits are counted in memory, and this service has several replicas: each admits as much as its rules say",
			slog.String("code", "memory_store_replicas"),
			slog.String("help", "use a RedisStore, or divide the max of each rule by the number of replicas"))
	}
}
