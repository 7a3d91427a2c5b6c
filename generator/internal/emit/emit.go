// Package emit writes the Go source of generated files. The same input gives the
// same bytes.
package emit

import (
	"bytes"
	"go/types"
	"maps"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/model"
	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/generator/internal/output"
)

// An emitter writes one generated file.
type emitter struct {
	file    *model.File
	imports *importSet
	names   map[string]bool // that declarations of the package must not have
}

// Render returns the file that is generated for a source file.
func Render(f *model.File) ([]byte, error) {
	e := &emitter{file: f, imports: newImportSet(f), names: f.TakenNames()}
	return e.render()
}

func (e *emitter) render() ([]byte, error) {
	e.collectImports()
	f := jen.NewFile(e.file.Home.Name())
	f.HeaderComment(output.Header)
	if line := strings.TrimSpace(output.BuildLines(e.file.Content)); line != "" {
		f.HeaderComment("")
		f.HeaderComment(line)
	}
	f.Add(e.imports.decl())
	f.Line()
	if e.file.Out != nil {
		f.Comment(output.DeclaredIn(e.file.Pkg.Types.Path()))
		f.Line()
	}
	f.Comment("This code needs a runtime of version 0.1.0 or later.")
	f.Const().Id("_").Op("=").Add(e.runtime("IsAtLeastVersion0_1_0"))
	for _, w := range e.file.Wrappers {
		e.wrapper(f, w)
	}
	var out bytes.Buffer
	if err := f.Render(&out); err != nil {
		return nil, err
	}
	// jennifer writes an empty header comment as "// ".
	return bytes.Replace(out.Bytes(), []byte(output.Header+"\n//\n"), []byte(output.Header+"\n\n"), 1), nil
}

// collectImports finds the packages that the file needs and settles their
// names.
func (e *emitter) collectImports() {
	s := e.imports
	taken := map[string]bool{"_": true}
	if e.file.Out != nil {
		maps.Copy(taken, e.names)
	}
	for _, name := range e.file.Home.Scope().Names() { // imports may repeat those of other files
		taken[name] = true
	}
	s.use(naming.RuntimePath, "runtime")
	if len(e.file.Wrappers) > 0 {
		s.usePackage(e.file.Pkg.Types)
	}
	useType := func(t types.Type) {
		types.TypeString(t, func(p *types.Package) string { s.usePackage(p); return "" })
	}
	for _, w := range e.file.Wrappers {
		for p := range w.TypeParams.TypeParams() {
			taken[p.Obj().Name()] = true
			useType(p.Constraint())
		}
		for _, r := range w.Rules {
			s.use("time", "time")
			taken[r.VarName] = true
			for _, field := range r.Fields() {
				s.useCode(field.Code)
			}
			if r.Max != nil {
				s.useExpr(r.Max)
			}
		}
		for _, m := range w.Methods {
			useType(m.Type)
			if len(m.Limits) > 0 && m.Context() == nil {
				s.use("context", "context")
			}
			for _, l := range m.Limits {
				l.EachExpr(s.useExpr)
			}
		}
	}
	s.settle(taken)
}

func (e *emitter) runtime(name string) *jen.Statement {
	return jen.Id(e.imports.name(naming.RuntimePath)).Dot(name)
}

func indefinite(name string) string {
	if strings.ContainsRune("aeioAEIO", []rune(name)[0]) || strings.HasPrefix(strings.ToLower(name), "un") {
		return "an"
	}
	return "a"
}

// comment writes a comment, broken into lines.
func comment(g *jen.Group, text string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len("// ")+len(line)+1+len(word) > 77 {
			g.Comment(line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	g.Comment(line)
}
