package expr

import (
	"go/ast"
	"go/types"
)

// A Lowered is an expression as ordered steps and what is left of it. After its
// steps it can be evaluated without a panic of its own: no nil pointer or
// interface is used, and no index is out of range. It evaluates what the same
// expression in Go evaluates, and in the same order.
//
// The syntax of the expression is as it was written. A node that a step puts
// into a variable is replaced by it wherever the expression is written out.
type Lowered struct {
	*Expr
	Steps []Step
}

// A Step is a [*Test], a [*Bind] or a [*Short].
type Step interface{ isStep() }

// A Test finds out whether an expression would panic if evaluation went on.
type Test struct {
	Subject ast.Expr   // what must not be nil, or is indexed; may be evaluated twice
	Type    types.Type // of Subject
	Index   string     // the constant index, or "" for a comparison with nil
	Reason  string     // for the log; names the expression, never a value
	// Embedded is not nil if Subject is this field on the way to another one.
	Embedded *types.Var
	Path     []Branch // the test is to be made only if all of these hold
}

// A Branch is a condition that && or || has tested before what is on its right.
type Branch struct {
	Cond ast.Expr
	Is   bool
}

// A Bind evaluates a node once, into a variable.
type Bind struct{ Node ast.Expr }

// A Short is a && or || on whose right something has to be done in steps. Its
// variable is first what is on the left. If that does not decide, Right is to be
// done, and the variable is then what is on the right.
type Short struct {
	Node  *ast.BinaryExpr
	Right []Step
}

func (*Test) isStep()  {}
func (*Bind) isStep()  {}
func (*Short) isStep() {}

// Tests returns the tests among steps, those on the right of a [Short] too.
func Tests(steps []Step) []*Test {
	var tests []*Test
	for _, s := range steps {
		switch s := s.(type) {
		case *Test:
			tests = append(tests, s)
		case *Short:
			tests = append(tests, Tests(s.Right)...)
		}
	}
	return tests
}

// OnlyTests reports whether steps put nothing into variables.
func OnlyTests(steps []Step) bool {
	for _, s := range steps {
		if _, ok := s.(*Test); !ok {
			return false
		}
	}
	return true
}

// CannotFail reports whether steps test nothing.
func CannotFail(steps []Step) bool { return len(Tests(steps)) == 0 }

// HasShort reports whether something is put into a variable on a condition.
func HasShort(steps []Step) bool {
	for _, s := range steps {
		if _, ok := s.(*Short); ok {
			return true
		}
	}
	return false
}
