package ratetally

import "sync"

// maxNodes is how many nodes have series of their own.
const maxNodes = 1000

// nodes are the circuit breakers of a store's servers.
type nodes struct {
	mu    sync.Mutex
	open  map[string]bool // by address
	other int             // how many beyond them are open
}

// set notes the state of a breaker. The addresses of servers that come and go take
// the places of others whose breakers are closed.
func (n *nodes) set(node string, open bool) {
	node = labelOf(node)
	n.mu.Lock()
	defer n.mu.Unlock()
	_, known := n.open[node]
	if !known && !open && n.other > 0 {
		n.other--
	} else if known || len(n.open) < maxNodes || n.forget() {
		n.open[node] = open
	} else if open {
		n.other++
	}
}

// forget makes room by a node whose breaker is closed, and reports whether there
// was one.
func (n *nodes) forget() bool {
	for node, open := range n.open {
		if !open && node != "" {
			delete(n.open, node)
			return true
		}
	}
	return false
}

func (n *nodes) collect(emit Emit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for node, open := range n.open {
		emit(breakerOpen, boolValue(open), node)
	}
	if n.other > 0 {
		emit(breakerOpen, float64(n.other), otherLabel)
	}
}
