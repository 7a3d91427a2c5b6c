package override

import (
	"slices"
	"strings"

	"github.com/rategen/rategen/runtime/internal/private"
)

// A node is a value in a JSON or YAML text.
type node struct {
	name   string // of the field that it is the value of
	line   int    // 0: it has none
	kind   kind
	text   string // of a boolean, number or text
	fields []*node
}

type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "text", "a list", "an object"}[k]
}

// maxDepth is more than any overrides need.
const maxDepth = 8

// add adds a field to an object.
func (n *node) add(f *node, seen map[string]bool) error {
	if seen[f.name] {
		return f.errorf("field %.80q comes twice: leave one out", f.shown())
	}
	seen[f.name] = true
	n.fields = append(n.fields, f)
	return nil
}

// want returns an error if the node is not of a kind.
func (n *node) want(k kind, what, example string) error {
	if n.kind == k {
		return nil
	}
	if n.kind == null && n.name != "" {
		return n.errorf("%.80s is empty: write %s, or leave it out", n.shown(), example)
	}
	if n.name != "" {
		return n.errorf("%.80s is %v: write %s such as %s", n.shown(), n.kind, what, example)
	}
	return n.errorf("%v: write %s such as %s", n.kind, what, example)
}

// shown returns the name for an error. One that is not that of a field may be a key,
// which is private.
func (n *node) shown() any {
	if n.name == "rules" || slices.Contains(strings.Split(ruleFields+", weight", ", "), n.name) {
		return n.name
	}
	return private.Text(n.name)
}

func (n *node) unknown(known string) error {
	return n.errorf("unknown field %.80q: there are %s", n.shown(), known)
}

func (n *node) errorf(format string, args ...any) error {
	err := private.Errorf(format, args...)
	if n.line > 0 {
		return private.Errorf("line %d: %w", n.line, err)
	}
	return err
}
