package override

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/observe"
)

// Redis returns a source that reads the hash under a key of Redis, the key as it
// is without any namespace. A field is the name of a rule, or * for all, or a list
// of a rule and a pattern of its keys. Its value is the override in JSON.
//
// Redis has no empty hashes, so a key that is missing is one that overrides
// nothing: what flushes that Redis takes the overrides back. While Redis gives
// no answer the last good ones stay in force. A hash of more than 200,000 fields,
// 10,000 rules or 16 MiB is an error. All of it is read at each interval: give a
// large one a longer interval.
//
// One read at a time is under way. One that go-redis does not end with its
// context, as it does not by default, ends with the client's own timeouts, or
// when the client is closed.
func Redis(client redis.UniversalClient, key string) runtime.OverrideSource {
	return &hash{client: client, key: key, reading: make(chan struct{}, 1)}
}

// String names the hash in the reports of processes.
func (h *hash) String() string { return "redis:" + h.key }

type hash struct {
	client  redis.UniversalClient
	key     string
	reading chan struct{} // holds a value while a read is under way
	ahead   atomic.Int64  // by how many nanoseconds the clock of Redis is

	mu      sync.Mutex        // several limiters may share the source
	last    map[string]string // what was last understood; nil: nothing
	current reading
}

// A reply is what Redis says about the hash.
type reply struct {
	fields   map[string]string
	err      error
	panicked any // what a hook of the client has panicked with
}

// Overrides implements [runtime.OverrideSource].
func (h *hash) Overrides(ctx context.Context) (runtime.Overrides, error) {
	fields, err := h.ask(ctx)
	if err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.current.lastGood(h.now(), err)
	}
	return h.parse(fields)
}

// ask returns the fields of the hash when Redis has sent them, or the context ends.
func (h *hash) ask(ctx context.Context) (map[string]string, error) {
	select {
	case h.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, h.late(ctx)
	}
	replies := make(chan reply, 1)
	go func() {
		var r reply
		defer func() {
			r.panicked = recover()
			<-h.reading
			replies <- r
		}()
		if r.fields, r.err = readHash(ctx, h.client, h.key); r.err == nil && end(r.fields) {
			h.readTime(ctx)
		}
		relearn(ctx, h.client, r.err)
	}()
	select {
	case r := <-replies:
		if r.panicked != nil {
			panic(r.panicked) // where the limiter contains it
		}
		return r.fields, r.err
	case <-ctx.Done():
		return nil, h.late(ctx)
	}
}

func end(fields map[string]string) bool {
	for _, value := range fields {
		if strings.Contains(value, "until") {
			return true
		}
	}
	return false
}

// readTime learns the time of Redis, by which ends are judged. A user without the right has the time of
// this process.
func (h *hash) readTime(ctx context.Context) {
	began := time.Now()
	if now, err := h.client.Time(ctx).Result(); err == nil {
		h.ahead.Store(int64(now.Sub(began.Add(time.Since(began) / 2))))
	}
}

func (h *hash) now() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) }

// relearn has the client of a cluster ask which server has which keys, if one could not
// be reached. By itself it would ask a master that has died for up to a minute.
func relearn(ctx context.Context, client redis.UniversalClient, err error) {
	cluster, is := client.(*redis.ClusterClient)
	if !is || err == nil {
		return
	}
	switch runtime.ClassOf(err) {
	case observe.ClassDial, observe.ClassConnection, observe.ClassTimeout:
		cluster.ReloadState(ctx)
	}
}

func (h *hash) late(ctx context.Context) error {
	return private.Errorf("overrides in %q: redis gave no answer: %w", h.key, ctx.Err())
}

func readHash(ctx context.Context, client redis.Cmdable, key string) (map[string]string, error) {
	n, err := client.HLen(ctx, key).Result()
	if err == nil && n > maxFields {
		return nil, private.InvalidOverrides(private.Errorf("overrides in %q: %d fields, the most is %d", key, n, maxFields))
	}
	var fields map[string]string
	if err == nil {
		fields, err = client.HGetAll(ctx, key).Result()
	}
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return nil, private.InvalidOverrides(private.Errorf("overrides in %q: %w: delete the key, and write a hash with HSET", key, private.Hide(err)))
	}
	if err != nil {
		return nil, private.Errorf("overrides in %q: %w", key, private.Hide(err))
	}
	if size := sizeOf(fields); size > maxBytes {
		return nil, private.InvalidOverrides(private.Errorf("overrides in %q: %d bytes, the most is %d", key, size, maxBytes))
	}
	return fields, nil
}

func sizeOf(fields map[string]string) (size int) {
	for name, value := range fields {
		size += len(name) + len(value)
	}
	return size
}

func (h *hash) parse(fields map[string]string) (runtime.Overrides, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last != nil && maps.Equal(h.last, fields) {
		return h.current.at(h.now()), nil
	}
	read, err := parseHash(fields)
	if err != nil {
		return h.current.lastGood(h.now(), private.InvalidOverrides(private.Errorf("overrides in %q: %w", h.key, err)))
	}
	h.last, h.current = fields, read
	return h.current.at(h.now()), nil
}
