package record

import "fmt"

// Bounds of what records that are read together may name: about 100 MB for both. More is an error.
const (
	MaxRules   = 10_000
	MaxCallers = 1_000_000
	maxLabels  = 1000
)

// Names are the rules and callers of records, by their numbers. The caller 0 is everybody.
type Names struct {
	Rules   []RuleState
	Callers []Caller

	texts   map[string]uint32
	numbers map[Caller]uint32
	labels  map[string]string
}

func newNames() *Names {
	return &Names{Callers: []Caller{Everybody}, texts: map[string]uint32{}, numbers: map[Caller]uint32{Everybody: 0},
		labels: map[string]string{}}
}

// A TooMuch error says that records name more than a reader keeps.
type TooMuch struct{ error }

func (n *Names) rule(text []byte) (uint32, error) {
	if i, known := n.texts[string(text)]; known {
		return i, nil
	}
	s, err := parseRule(text)
	if err != nil {
		return 0, fmt.Errorf("a rule of the record: %w", err)
	}
	if len(n.Rules) == MaxRules {
		return 0, TooMuch{fmt.Errorf("the records have more than %d states of rules: name fewer files", MaxRules)}
	}
	i := uint32(len(n.Rules))
	n.Rules, n.texts[string(text)] = append(n.Rules, s), i
	return i, nil
}

func (n *Names) caller(c Caller) (uint32, error) {
	if i, known := n.numbers[c]; known {
		return i, nil
	}
	if len(n.Callers) == MaxCallers {
		return 0, TooMuch{fmt.Errorf("the records have more than %d callers: name fewer files, or record a share",
			MaxCallers)}
	}
	i := uint32(len(n.Callers))
	n.Callers, n.numbers[c] = append(n.Callers, c), i
	return i, nil
}

// label returns a label, of which there are not too many: then it is "other".
func (n *Names) label(text []byte) string {
	if label, known := n.labels[string(text)]; known {
		return label
	}
	if len(n.labels) == maxLabels {
		return "other"
	}
	label := string(text)
	n.labels[label] = label
	return label
}
