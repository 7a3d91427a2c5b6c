package server

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// memoryTime is how long a reading may take.
const memoryTime = time.Second

// A MemoryWatch reads the memory use of the servers at an interval.
type MemoryWatch struct {
	client   redis.UniversalClient
	interval time.Duration
	read     func(Memory, error)

	once    sync.Once
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup
}

// NewMemoryWatch returns a watch that has not begun. It calls read with the memory of
// the fullest server, or an error, from one goroutine.
func NewMemoryWatch(client redis.UniversalClient, interval time.Duration, read func(Memory, error)) *MemoryWatch {
	w := &MemoryWatch{client: client, interval: interval, read: read}
	w.ctx, w.end = context.WithCancel(context.Background())
	return w
}

// Begin starts the watch, if it has not been started and is not closed.
func (w *MemoryWatch) Begin() {
	w.once.Do(func() { w.running.Go(w.run) })
}

// Close ends the watch and returns when it has ended.
func (w *MemoryWatch) Close() {
	w.end()
	w.once.Do(func() {})
	w.running.Wait()
}

func (w *MemoryWatch) run() {
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		if use, err := fullest(w.ctx, w.client); w.ctx.Err() == nil {
			w.read(use, err)
		}
		select {
		case <-ticker.C:
		case <-w.ctx.Done():
			return
		}
	}
}

// A Memory is what a server says of its memory, in bytes.
type Memory struct {
	Used    int64
	max     int64 // 0: not set
	machine int64
}

// Limit returns how much the server may use.
func (u Memory) Limit() int64 {
	if u.max > 0 {
		return u.max
	}
	return u.machine
}

// Share returns the share of the limit that is in use, 0 if there is no limit.
func (u Memory) Share() float64 {
	if u.Limit() == 0 {
		return 0
	}
	return float64(u.Used) / float64(u.Limit())
}

// fullest returns the memory of the server that has the largest share in use.
func fullest(ctx context.Context, client redis.UniversalClient) (fullest Memory, err error) {
	ctx, cancel := context.WithTimeout(ctx, memoryTime)
	defer cancel()
	var mu sync.Mutex
	err = masters(ctx, client, func(ctx context.Context, c redis.Cmdable) error {
		if client, ok := c.(*redis.Client); ok {
			c = client.WithTimeout(memoryTime)
		}
		info, err := c.Info(ctx, "memory").Result()
		if err != nil {
			return err
		}
		use := readMemory(info)
		mu.Lock()
		defer mu.Unlock()
		if fullest == (Memory{}) || use.Share() > fullest.Share() {
			fullest = use
		}
		return nil
	})
	return fullest, err
}

// readMemory reads what INFO memory replies.
func readMemory(info string) (use Memory) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "used_memory":
			use.Used = n
		case "maxmemory":
			use.max = n
		case "total_system_memory":
			use.machine = n
		}
	}
	return use
}
