package override

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/rategen/rategen/runtime/internal/private"
)

// parseJSON returns the value that a JSON text consists of.
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

// value reads the value of a field.
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
