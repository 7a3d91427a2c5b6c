package employee

import (
	"context"
	"sync"
	"time"
)

// maxCached is how many employees a Cache holds. Without a bound a caller could
// fill the memory with ever new ids.
const maxCached = 10_000

// A Cache is an EmployeeService that reads through to another one and remembers
// the results of GetByID.
//
// It belongs below the rate limit, as in
//
//	NewRateLimitedEmployeeService(NewCache(directory, ttl), limiter)
//
// because the limit is about calls and not about reads of the directory. The other
// way around, calls for a cached employee would have no limit, and a refused call
// would still look into the cache.
type Cache struct {
	next EmployeeService
	ttl  time.Duration

	mu      sync.Mutex
	entries map[string]cacheEntry
}

type cacheEntry struct {
	employee Employee
	expires  time.Time
}

var _ EmployeeService = (*Cache)(nil)

// NewCache returns next behind a cache whose entries live for ttl.
func NewCache(next EmployeeService, ttl time.Duration) *Cache {
	return &Cache{next: next, ttl: ttl, entries: make(map[string]cacheEntry)}
}

// GetByID implements EmployeeService.
func (c *Cache) GetByID(ctx context.Context, id string) (*Employee, error) {
	if e, ok := c.load(id); ok {
		return &e, nil
	}
	e, err := c.next.GetByID(ctx, id)
	if err != nil {
		return nil, err
	}
	c.store(id, *e)
	return e, nil
}

// GetByEmail implements EmployeeService. It is not cached.
func (c *Cache) GetByEmail(ctx context.Context, email string) (*Employee, error) {
	return c.next.GetByEmail(ctx, email)
}

func (c *Cache) load(id string) (Employee, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.entries[id]
	if !ok || !time.Now().Before(entry.expires) {
		return Employee{}, false
	}
	return entry.employee, true
}

func (c *Cache) store(id string, e Employee) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[id]; !ok && len(c.entries) >= maxCached {
		for victim := range c.entries { // any entry will do
			delete(c.entries, victim)
			break
		}
	}
	c.entries[id] = cacheEntry{employee: e, expires: time.Now().Add(c.ttl)}
}
