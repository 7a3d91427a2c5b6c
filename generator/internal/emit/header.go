package emit

import (
	"github.com/dave/jennifer/jen"
)

// A header is the head of an if statement, and what stands before it. Without a
// condition there is no if.
type header struct {
	before []jen.Code
	init   []jen.Code // the statement that declares its variable, if any
	condition
}

// nested writes code within if statements, the first outermost.
func nested(headers []header, code []jen.Code) []jen.Code {
	for i := len(headers) - 1; i >= 0; i-- {
		h := headers[i]
		if !h.isZero() {
			code = []jen.Code{jen.If(append(h.init, jen.Op(h.String()))...).Block(code...)}
		}
		code = append(h.before, code...)
	}
	return code
}

// addCondition adds a condition to the last of some headers, where it stands in the
// same if.
func addCondition(headers []header, c condition) []header {
	if c.isZero() {
		return headers
	}
	if len(headers) == 0 {
		return []header{{condition: c}}
	}
	last := &headers[len(headers)-1]
	last.condition = allOf(last.condition, c)
	return headers
}

// chain appends headers, the first of which is merged with the last there is.
func chain(headers, more []header) []header {
	for _, h := range more {
		if len(h.before) > 0 || len(h.init) > 0 {
			headers = append(headers, h)
		} else {
			headers = addCondition(headers, h.condition)
		}
	}
	return headers
}
