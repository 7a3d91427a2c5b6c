package override

import (
	"bytes"
	"errors"
	"io"
	"regexp"

	"go.yaml.in/yaml/v4"

	"github.com/rategen/rategen/runtime/internal/private"
)

// parseYAML returns the value that a YAML text consists of.
func parseYAML(data []byte) (*node, error) {
	documents, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var document, next yaml.Node
	err = documents.Load(&document)
	if err == io.EOF {
		return &node{}, nil
	}
	if err != nil {
		return nil, notYAML(err)
	}
	if err := documents.Load(&next); err != io.EOF {
		return nil, errors.New("more than one YAML document: a line --- begins the next")
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return nil, errors.New("not a YAML document")
	}
	return valueOf(document.Content[0], "", 0)
}

// quoted is what an error of YAML quotes of a text: a key perhaps.
var quoted = regexp.MustCompile("'[^']{2,}'|\"[^\"]{2,}\"|`[^`]{2,}`")

// notYAML returns the error of a text that is not YAML.
func notYAML(err error) error {
	return private.Errorf("not YAML: %w", private.Because(quoted.ReplaceAllString(err.Error(), "…"), err))
}

// valueOf returns a YAML node as a value. What needs not be understood here is
// refused: aliases, and tags of other kinds.
func valueOf(y *yaml.Node, name string, depth int) (*node, error) {
	n := &node{name: name, line: y.Line, text: y.Value}
	if depth > maxDepth {
		return nil, n.errorf("objects and lists within each other more than %d deep", maxDepth)
	}
	tag := y.ShortTag()
	switch {
	case y.Kind == yaml.AliasNode:
		return nil, n.errorf("*%.80s stands for something elsewhere: write that here", private.Text(y.Value))
	case y.Kind == yaml.MappingNode && tag == "!!map":
		n.kind = object
		seen := map[string]bool{}
		for i := 0; i < len(y.Content); i += 2 {
			key := y.Content[i]
			if key.Kind != yaml.ScalarNode {
				return nil, (&node{line: key.Line}).errorf("the name of a field is not text: put it into quotes")
			}
			field, err := valueOf(y.Content[i+1], key.Value, depth+1)
			if err == nil {
				err = n.add(field, seen)
			}
			if err != nil {
				return nil, err
			}
		}
	case y.Kind == yaml.SequenceNode && tag == "!!seq":
		n.kind = list
	case y.Kind == yaml.ScalarNode && tag == "!!null":
		n.kind = null
	case y.Kind == yaml.ScalarNode && tag == "!!bool" && (y.Value == "true" || y.Value == "false"):
		n.kind = boolean
	case y.Kind == yaml.ScalarNode && (tag == "!!int" || tag == "!!float"):
		n.kind = number
	case y.Kind == yaml.ScalarNode && (tag == "!!str" || tag == "!!bool" || tag == "!!timestamp"):
		n.kind = text
	default:
		return nil, n.errorf("unknown tag %.80s: leave it out", y.Tag)
	}
	return n, nil
}
