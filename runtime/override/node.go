package override

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
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
	if n.name == "rules" || slices.Contains(strings.Split(fileFields+", weight", ", "), n.name) {
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

func (n *node) boolean() (*bool, error) {
	if err := n.want(boolean, "a boolean", "true or false"); err != nil {
		return nil, err
	}
	return new(n.text == "true"), nil
}

func (n *node) integer() (*int64, error) {
	if err := n.want(number, "a whole number", "10"); err != nil {
		return nil, err
	}
	i, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil || strconv.FormatInt(i, 10) != n.text { // as 010, which is 8 to some
		return nil, n.errorf("%s is %.40s: write a whole number such as 10", n.name, n.text)
	}
	return &i, nil
}

func (n *node) mode() (*runtime.Mode, error) {
	if err := n.want(text, "text", "enforce, soft or shadow"); err != nil {
		return nil, err
	}
	for _, m := range []runtime.Mode{runtime.ModeEnforce, runtime.ModeSoft, runtime.ModeShadow} {
		if n.text == m.String() {
			return &m, nil
		}
	}
	return nil, n.errorf("unknown mode %.40q: write enforce, soft or shadow", n.text)
}

func (n *node) duration() (*time.Duration, error) {
	if err := n.want(text, "text with a unit", `"10s"`); err != nil {
		return nil, err
	}
	d, err := time.ParseDuration(n.text)
	if days, ok := strings.CutSuffix(n.text, "d"); ok {
		var whole uint64
		whole, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(whole) * 24 * time.Hour
	}
	if err != nil {
		return nil, n.errorf("window %.40q is not a duration: write one such as 500ms, 10s, 1h30m or 7d", n.text)
	}
	return &d, nil
}

func (n *node) time() (time.Time, error) {
	if err := n.want(text, "text", `"2026-11-22T15:00:00Z"`); err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339, n.text)
	if err != nil || t.IsZero() {
		return time.Time{}, n.errorf("until %.40q is no time: write one such as 2026-11-22T15:00:00Z", n.text)
	}
	return t, nil
}
