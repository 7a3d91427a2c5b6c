package override

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/rategen/rategen/runtime/internal/private"
)

func parseJSON(data []byte) (*node, error) {
	if !utf8.Valid(data) { // the bytes would be replaced, and a key be another
		return nil, errors.New("not JSON: not UTF-8: write a byte above 0x7F of a key as %XX")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, private.Errorf("line %d: not JSON: %w", 1+bytes.Count(data[:syntax.Offset], []byte("\n")), err)
		}
		return nil, private.Errorf("not JSON: %w", err)
	}
	r := jsonReader{data: data, tokens: json.NewDecoder(bytes.NewReader(data)), line: 1}
	r.tokens.UseNumber()
	return r.value("", 0)
}

// A jsonReader walks through a text that is known to be JSON.
type jsonReader struct {
	data   []byte
	tokens *json.Decoder
	offset int64 // of the end of the last token
	line   int   // that it is on
}

func (r *jsonReader) next() (json.Token, error) {
	token, err := r.tokens.Token()
	end := r.tokens.InputOffset()
	r.line += bytes.Count(r.data[r.offset:end], []byte("\n"))
	r.offset = end
	return token, err
}

func (r *jsonReader) value(name string, depth int) (*node, error) {
	token, err := r.next()
	if err != nil {
		return nil, err
	}
	n := &node{name: name, line: r.line}
	if depth > maxDepth {
		return nil, n.errorf("objects and lists within each other more than %d deep", maxDepth)
	}
	switch token := token.(type) {
	case nil:
	case bool:
		n.kind, n.text = boolean, fmt.Sprint(token)
	case json.Number:
		n.kind, n.text = number, token.String()
	case string:
		n.kind, n.text = text, token
	case json.Delim:
		if token == '{' {
			return n, r.object(n, depth)
		}
		return n, r.list(n, depth)
	}
	return n, nil
}

func (r *jsonReader) object(n *node, depth int) error {
	n.kind = object
	for seen := map[string]bool{}; r.tokens.More(); {
		name, err := r.next()
		if err != nil {
			return err
		}
		field, err := r.value(name.(string), depth+1)
		if err == nil {
			err = n.add(field, seen)
		}
		if err != nil {
			return err
		}
	}
	_, err := r.next()
	return err
}

// list passes over a list, which is never what is wanted.
func (r *jsonReader) list(n *node, depth int) error {
	n.kind = list
	for r.tokens.More() {
		if _, err := r.value("", depth+1); err != nil {
			return err
		}
	}
	_, err := r.next()
	return err
}

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
