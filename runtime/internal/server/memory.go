package server

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/background"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rediswire"
)

// memoryTime is how long a reading may take.
const memoryTime = time.Second

// A MemoryWatch reads the memory use of the servers at an interval.
type MemoryWatch struct {
	client   rediswire.Client
	interval time.Duration
	read     func(Reading, error)

	once sync.Once
	ctx  context.Context
	end  context.CancelFunc
	work background.Group
}

// NewMemoryWatch returns a watch that has not begun. It calls read with the memory of
// the fullest server and how many keys all have evicted, or an error, from one goroutine.
func NewMemoryWatch(client rediswire.Client, interval time.Duration, read func(Reading, error)) *MemoryWatch {
	w := &MemoryWatch{client: client, interval: interval, read: read}
	w.ctx, w.end = context.WithCancel(context.Background())
	return w
}

// Begin starts the watch, if it has not been started and is not closed. A nil watch reads
// nothing.
func (w *MemoryWatch) Begin() {
	if w != nil {
		w.once.Do(func() { w.work.Go(w.run) })
	}
}

// Close ends the watch and returns when it has ended.
func (w *MemoryWatch) Close() {
	if w == nil {
		return
	}
	w.end()
	w.work.Close()
}

func (w *MemoryWatch) run() {
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	last := int64(-1) // evictions of the reading before
	for {
		use, err := readFullest(w.ctx, w.client)
		if err == nil {
			sum := use.Evicted
			if last < 0 { // from before the watch
				use.Evicted = 0
			} else if sum >= last { // and else a server has begun to count anew
				use.Evicted -= last
			}
			last = sum
		}
		if w.ctx.Err() == nil {
			w.read(use, err)
		}
		select {
		case <-ticker.C:
		case <-w.ctx.Done():
			return
		}
	}
}

// A Reading is what a server says of its memory, in bytes.
type Reading struct {
	Used    int64
	Evicted int64 // keys, of all servers since the reading before
	max     int64 // 0: not set
	machine int64
}

// Most returns how much the server may use.
func (r Reading) Most() int64 {
	if r.max > 0 {
		return r.max
	}
	return r.machine
}

// Share returns the share of the limit that is in use, 0 if there is no limit.
func (r Reading) Share() float64 {
	if r.Most() == 0 {
		return 0
	}
	return float64(r.Used) / float64(r.Most())
}

// readFullest returns the memory of the server that has the largest share in use, with the sum
// of the keys that all servers have evicted since they started.
func readFullest(ctx context.Context, client rediswire.Client) (fullest Reading, err error) {
	ctx, cancel := context.WithTimeout(ctx, memoryTime)
	defer cancel()
	var mu sync.Mutex
	evicted := int64(0)
	err = Each(ctx, client, func(ctx context.Context, server rediswire.Server) error {
		info, err := readInfo(ctx, server, "memory", "stats")
		if err != nil {
			return err
		}
		use := readMemory(info)
		if use.Used == 0 {
			return errInfo
		}
		mu.Lock()
		defer mu.Unlock()
		evicted += parseNumber(info["evicted_keys"])
		if fullest == (Reading{}) || use.Share() > fullest.Share() {
			fullest = use
		}
		return nil
	})
	fullest.Evicted = evicted
	return fullest, err
}

func readMemory(info map[string]string) Reading {
	return Reading{Used: parseNumber(info["used_memory"]), max: parseNumber(info["maxmemory"]),
		machine: parseNumber(info["total_system_memory"])}
}

func parseNumber(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

var errInfo = private.New("the reply to INFO has nothing of what was asked for")

// readInfo returns what a server says in sections of INFO, by the names of the fields. That is
// an error if it says nothing in one of them.
func readInfo(ctx context.Context, server rediswire.Server, sections ...string) (map[string]string, error) {
	ask := make([]rediswire.Command, len(sections))
	for i, section := range sections {
		ask[i].Args = []string{"info", section}
	}
	server.Patient(memoryTime).Do(ctx, ask)
	if err := rediswire.First(ask); err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for i := range ask {
		text, _ := ask[i].Value.(string)
		before := len(fields)
		for line := range strings.Lines(text) {
			if name, value, has := strings.Cut(strings.TrimSpace(line), ":"); has {
				fields[name] = value
			}
		}
		if len(fields) == before {
			return nil, errInfo
		}
	}
	return fields, nil
}
