package slots

import (
	"strconv"
	"testing"

	"github.com/rategen/rategen/runtime/rediswire"
)

// nodes is a client that knows servers and does nothing else.
type nodes struct {
	Client
	known map[string]rediswire.Server
}

func (n *nodes) Nodes() map[string]rediswire.Server { return n.known }

// TestServersAreForgotten replaces the servers of a cluster one after the other. Those that
// have left are not kept. One that has no slots for a while, but is there, stays the same.
func TestServersAreForgotten(t *testing.T) {
	t.Parallel()
	client := &nodes{known: map[string]rediswire.Server{}}
	c := New(client)
	const masters, replaced = 3, 1000
	port := int64(7000)
	ports := []int64{7000, 7001, 7002}
	addressOf := func(port int64) string { return "10.0.0.1:" + strconv.FormatInt(port, 10) }
	adopt := func() {
		clear(client.known)
		var slots []any
		for i, port := range ports {
			first := int64(slotCount / masters * i)
			last := first + slotCount/masters - 1
			if i == masters-1 {
				last = slotCount - 1
			}
			slots = append(slots, []any{first, last, []any{"10.0.0.1", port}})
			client.known[addressOf(port)] = client
		}
		client.known["10.0.0.1:6999"] = client // a replica
		if got := c.adopt(answer{"10.0.0.1:7000", slots, nil}); len(got) != masters {
			t.Fatalf("%d masters", len(got))
		}
	}
	replica := c.node("10.0.0.1:6999")
	for i := range replaced {
		adopt()
		if len(c.nodes) != masters+1 {
			t.Fatalf("%d servers are kept after %d were replaced", len(c.nodes), i)
		}
		port++
		ports[i%masters] = port + masters
	}
	if c.node("10.0.0.1:6999") != replica {
		t.Error("a server that is still there is another one")
	}
}
