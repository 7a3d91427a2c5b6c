package expr

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
)

// blankMarks makes Go of an expression without moving a byte: #id becomes id
// after a blank, #0 becomes _0. It returns the offsets of these identifiers,
// or the offset of a # that stands before no name.
func blankMarks(text string) (string, map[int]bool, int) {
	out, marks := []byte(text), map[int]bool{}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '`', '\'':
			if n := directive.QuoteEnd(text[i:]); n > 0 {
				i += n - 1
			}
		case '#':
			c, _ := utf8.DecodeRuneInString(text[i+1:])
			if i+1 < len(text) && c >= '0' && c <= '9' {
				out[i] = '_'
				marks[i] = true
			} else if i+1 < len(text) && (c == '_' || unicode.IsLetter(c)) {
				out[i] = ' '
				marks[i+1] = true
			} else {
				return "", nil, i
			}
		}
	}
	return string(out), marks, -1
}

// bindParams finds the parameters and results that the marked identifiers mean and gives
// these names that no Go identifier has.
func (s *Scope) bindParams(e *Expr, marks map[int]bool, m *Signature, report diag.Func) bool {
	ok := true
	ast.Inspect(e.Node, func(n ast.Node) bool {
		id, isIdent := n.(*ast.Ident)
		if !isIdent || !marks[int(id.Pos()-e.base)] {
			return true
		}
		name := id.Name
		if e.Source.Text[id.Pos()-e.base] == '#' { // a number
			name = name[1:]
		}
		p, unknown, near := m.lookup(name)
		if p == nil {
			report(e.at(id.Pos()), "%s", unknown).Mark("#" + name).ReplaceBy(near)
			ok = false
			return true
		}
		id.Name = "#" + name
		e.Params[id] = p
		return true
	})
	return ok
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// scope makes a scope like that of the interface in the source file, in which
// the parameters have their marked names, and returns a position inside of it.
func (s *Scope) scope(file *token.File, e *Expr, m *Signature) token.Pos {
	pkg := s.pkg
	scope := types.NewScope(pkg.Scope(), token.Pos(file.Base()), token.Pos(file.Base()+file.Size()+1), "directive")
	for _, name := range s.names.Names() {
		scope.Insert(s.names.Lookup(name))
	}
	for _, p := range s.extra {
		scope.Insert(p)
	}
	for _, t := range m.Types {
		scope.Insert(t)
	}
	for id, p := range e.Params {
		scope.Insert(types.NewParam(token.NoPos, pkg, id.Name, p.Type))
	}
	return token.Pos(file.Base())
}
