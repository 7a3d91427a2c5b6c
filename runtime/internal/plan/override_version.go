package plan

import (
	"fmt"
	"hash/fnv"
)

// Version returns a short text that is the same for overrides that say the same, whatever their
// order is.
func (o *Overrides) Version() string {
	sum := uint64(0)
	add := func(parts ...string) {
		h := fnv.New64a()
		for _, part := range parts {
			_, _ = h.Write([]byte(part + "\x00"))
		}
		sum += h.Sum64()
	}
	if o.Off {
		add("off")
	}
	for name, c := range o.Rules {
		add(name, fmt.Sprint(c))
	}
	for name, k := range o.Keys {
		texts := make([]string, len(k.changes))
		for i, c := range k.changes {
			texts[i] = fmt.Sprint(c)
		}
		for p, change := range k.table.All() {
			add(name, p.Text, fmt.Sprint(p.Prefix), texts[change])
		}
	}
	return fmt.Sprintf("%016x", sum)
}
