package directive

import (
	"strings"
	"time"

	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/internal/algorithm"
)

// aboveZero leaves a field out whose value is 0.
func aboveZero(parsed any) any {
	if parsed == time.Duration(0) {
		return nil
	}
	return parsed
}

// A Name is a package-level name in generated code.
type Name struct {
	PkgPath, Name string
}

// A Call is a call of a function in generated code. Its arguments are what the
// value of a [Field] may be.
type Call struct {
	Fun  Name
	Args []any
}

// names are the names for some values of an option. The other values are the
// runtime's default.
type names map[string]Name

func (n names) code(v any) any {
	if name, ok := n[v.(string)]; ok {
		return name
	}
	return nil
}

// algorithmCode writes fixed-window as runtime.FixedWindow.
func algorithmCode(v any) any {
	if v == algorithm.Names[0] {
		return nil
	}
	var name strings.Builder
	for word := range strings.SplitSeq(v.(string), "-") {
		name.WriteString(naming.UpperFirst(word))
	}
	return Name{naming.RuntimePath, name.String()}
}

func bucketsCode(v any) any {
	b := v.(buckets)
	if b.adaptive {
		return Call{Fun: Name{naming.RulePath, "AdaptiveBuckets"}}
	}
	if b.fine > 0 {
		return Call{Name{naming.RulePath, "LayeredBuckets"}, []any{int64(b.coarse), int64(b.fine)}}
	}
	return Call{Name{naming.RulePath, "EqualBuckets"}, []any{int64(b.coarse)}}
}

// named writes a choice by the constant whose name begins with a word and ends in it.
func named(pkgPath, word string) func(any) any {
	return func(v any) any { return Name{pkgPath, word + naming.UpperFirst(v.(string))} }
}

func adaptiveCode(v any) any {
	call := Call{Fun: Name{naming.AdaptivePath, "To"}}
	for _, signal := range v.([]string) {
		call.Args = append(call.Args, Name{naming.AdaptivePath, signals[signal]})
	}
	return call
}
