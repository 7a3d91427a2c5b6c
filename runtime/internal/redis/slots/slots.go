// Package slots finds the servers of a Redis cluster behind a client that keeps to itself
// which server has which slots.
package slots

import (
	"context"
	"errors"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/rediswire"
)

const (
	slotCount = 16384
	// topologyTime is how long the servers may take to say which has which slots.
	topologyTime = time.Second
)

// A Client is one of a Redis cluster. As a [rediswire.Server] it finds the server of a
// command by its key.
type Client interface {
	rediswire.Client
	// Slot returns the slot of a key.
	Slot(key string) int
	// Nodes returns the servers that the client knows, by address.
	Nodes() map[string]rediswire.Server
}

// A Cluster adds to a client which server has which slots.
type Cluster struct {
	Client
	slots [slotCount]atomic.Pointer[node] // nil: it is not known

	mu     sync.Mutex
	nodes  map[string]*node // by address
	asking *question        // under way
}

// A question is to all servers: which has which slots?
type question struct {
	done    chan struct{}
	masters []rediswire.Server
	err     error
}

func New(client Client) *Cluster { return &Cluster{Client: client, nodes: make(map[string]*node)} }

func (c *Cluster) Patient(time.Duration) rediswire.Server { return c }

func (*Cluster) Slots() bool { return true }

var _ rediswire.Cluster = (*Cluster)(nil)

var errNoServer = rediswire.NotSent(errors.New("the slot has no server"))

func (c *Cluster) Find(ctx context.Context, key string) (rediswire.Server, error) {
	at := &c.slots[c.Slot(key)]
	if n := at.Load(); n != nil {
		return n, nil
	}
	if _, err := c.Masters(ctx); err != nil {
		return nil, err
	}
	if n := at.Load(); n != nil {
		return n, nil
	}
	return nil, errNoServer
}

func (c *Cluster) Masters(ctx context.Context) ([]rediswire.Server, error) {
	q := c.ask()
	select {
	case <-q.done:
		return q.masters, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Cluster) Reload() { c.ask() }

// ask asks which server has which slots, unless that is being asked.
func (c *Cluster) ask() *question {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking != nil {
		return c.asking
	}
	q := &question{done: make(chan struct{})}
	c.asking = q
	go func() {
		q.masters, q.err = c.learn()
		c.mu.Lock()
		c.asking = nil
		c.mu.Unlock()
		close(q.done)
	}()
	return q
}

// An answer is what a server says of the slots.
type answer struct {
	from  string
	value any
	err   error
}

// learn asks all servers, and believes the first that answers.
func (c *Cluster) learn() ([]rediswire.Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), topologyTime)
	defer cancel()
	servers := c.Nodes()
	answers := make(chan answer, len(servers))
	for address, server := range servers {
		go func() {
			commands := []rediswire.Command{{Args: []string{"CLUSTER", "SLOTS"}}}
			server.Do(ctx, commands)
			answers <- answer{address, commands[0].Value, commands[0].Err}
		}()
	}
	err := error(errNoServer)
	for range servers {
		select {
		case a := <-answers:
			if err = a.err; err != nil {
				continue
			}
			if masters := c.adopt(a); len(masters) > 0 {
				return masters, nil
			}
			err = errNoServer
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, err
}

// adopt goes by what a server says from then on, and returns the masters that have slots.
func (c *Cluster) adopt(a answer) (masters []rediswire.Server) {
	host, _, _ := net.SplitHostPort(a.from)
	ranges, _ := a.value.([]any)
	seen := make(map[*node]bool)
	for _, r := range ranges {
		first, last, address, ok := slotsOf(r, host)
		if !ok {
			continue
		}
		n := c.node(address)
		for slot := first; slot <= last; slot++ {
			c.slots[slot].Store(n)
		}
		if !seen[n] {
			seen[n] = true
			masters = append(masters, n)
		}
	}
	c.forget()
	return masters
}

// forget forgets the servers that no slot is on, and that the client does not know any more:
// those of a cluster whose servers are replaced again and again have ever new addresses.
func (c *Cluster) forget() {
	used := make(map[*node]bool)
	for i := range c.slots {
		used[c.slots[i].Load()] = true
	}
	known := c.Nodes()
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.nodes, func(address string, n *node) bool { return !used[n] && known[address] == nil })
}

// slotsOf decodes a range of slots and the address of its master, whose host is another's
// if it is not said.
func slotsOf(value any, host string) (first, last int64, address string, ok bool) {
	fields, _ := value.([]any)
	if len(fields) < 3 {
		return 0, 0, "", false
	}
	first, is := fields[0].(int64)
	last, isToo := fields[1].(int64)
	master, _ := fields[2].([]any)
	if !is || !isToo || first < 0 || last >= slotCount || len(master) < 2 {
		return 0, 0, "", false
	}
	if said, _ := master[0].(string); said != "" && said != "?" {
		host = said
	}
	port, is := master[1].(int64)
	return first, last, net.JoinHostPort(host, strconv.FormatInt(port, 10)), is
}

func (c *Cluster) node(address string) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[address]
	if n == nil {
		n = &node{cluster: c, address: address}
		c.nodes[address] = n
	}
	return n
}

// moved has calls on a slot go where a server has sent one of them.
func (c *Cluster) moved(err error) {
	var reply rediswire.ReplyError
	if !errors.As(err, &reply) {
		return
	}
	words := strings.Fields(reply.Error())
	if len(words) != 3 || words[0] != "MOVED" {
		return
	}
	if slot, err := strconv.Atoi(words[1]); err == nil && slot >= 0 && slot < slotCount {
		c.slots[slot].Store(c.node(words[2]))
	}
	c.Reload()
}
