package generator

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
)

// A sourceFile is a file that has directives or something like them.
type sourceFile struct {
	path    string // absolute
	ast     *ast.File
	imports []*importSpec
	ifaces  []*ifaceDecl
	methods []*methodDirectives // above methods of concrete types
}

// An ifaceDecl is an interface declaration with directives on it or on its
// methods, or a concrete type with directives on its methods.
type ifaceDecl struct {
	spec     *ast.TypeSpec
	own      []*directive            // on the interface itself
	methods  map[string][]*directive // on its methods, by name
	concrete *concreteType           // nil for an interface
	sources  map[string]*sourceFile  // of a concrete type: where the methods with directives stand
}

// An owner is a declaration whose doc comment may hold directives.
type owner struct {
	spec   *ast.TypeSpec
	method string        // "" for the interface itself
	fn     *ast.FuncDecl // instead of these, a method of a concrete type
}

// mentions finds the files that are worth parsing.
var mentions = regexp.MustCompile(`(?i)rate[-_]?limit`)

// nearMiss recognises a comment line that was meant as a directive: the word,
// then either a colon and something like an option, or an option of ours.
var nearMiss = regexp.MustCompile(`^\s*[@+]?(?i:rate[-_]?limit)(?:` +
	`\s*:\s*([A-Za-z]\w*\s*=\s*\S.*|off\s*$|import\s+["` + "`" + `].*)|` +
	`\s+((?:` + strings.Join(optionNames(), "|") + `)=\S.*))`)

// misspelt recognises a comment line that is a directive but for its first
// word or the colon, and mentionsMisspelt the files that may have one.
var (
	misspelt         = regexp.MustCompile(`^[ \t]*[@+]?(?:go:)?([A-Za-z][A-Za-z_-]{5,13})[ \t]*[:;,.]?[ \t]*((?:` + strings.Join(optionNames(), "|") + `)=\S.*)`)
	mentionsMisspelt = regexp.MustCompile(`//` + misspelt.String()[1:])
)

// mayMention reports whether a file is worth parsing.
func mayMention(content []byte) bool {
	return mentions.Match(content) || mentionsMisspelt.Match(content)
}

// findNearMiss returns the options in a comment line that was meant as a
// directive, or "".
func findNearMiss(text string) string {
	if m := nearMiss.FindStringSubmatch(text); m != nil {
		return strings.TrimSpace(m[1] + m[2])
	}
	if m := misspelt.FindStringSubmatch(text); m != nil {
		word := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(m[1]))
		if editDistance(word, "ratelimit") <= 2 || word == "rategen" {
			return strings.TrimSpace(m[2])
		}
	}
	return ""
}

// parseSource parses a file and attaches its directives to the interfaces and
// methods they belong to.
func parseSource(fset *token.FileSet, path string, content []byte, report reportFunc) *sourceFile {
	file, err := parser.ParseFile(fset, path, content, parser.ParseComments|parser.SkipObjectResolution|parser.AllErrors)
	if list, ok := err.(scanner.ErrorList); ok {
		tf := fset.File(file.FileStart)
		for _, e := range list {
			report(tf.Pos(min(e.Pos.Offset, tf.Size())), "%s", e.Msg)
		}
		return nil
	}
	if ast.IsGenerated(file) && isOurs(content) {
		return nil
	}
	src := &sourceFile{path: path, ast: file}
	owners, places := owners(file)
	byName := map[*ast.TypeSpec]*ifaceDecl{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			d := src.directive(c, group == file.Doc, report)
			if d == nil || d.imports != nil {
				continue
			}
			o, ok := owners[group]
			if !ok {
				report(c.Pos(), "%s", misplaced(group, places))
				continue
			}
			if o.fn != nil {
				src.addMethod(o.fn, d)
				if !d.off {
					d.rule = parseRule(d, anywhere, report)
				}
				continue
			}
			decl := byName[o.spec]
			if decl == nil {
				decl = &ifaceDecl{spec: o.spec, methods: map[string][]*directive{}}
				byName[o.spec] = decl
				src.ifaces = append(src.ifaces, decl)
			}
			on := anywhere
			if o.method == "" {
				on = onInterface
				decl.own = append(decl.own, d)
			} else {
				decl.methods[o.method] = append(decl.methods[o.method], d)
			}
			if !d.off {
				d.rule = parseRule(d, on, report)
			}
		}
	}
	return src
}

// addMethod adds a directive above a method of a concrete type.
func (src *sourceFile) addMethod(fn *ast.FuncDecl, d *directive) {
	n := len(src.methods)
	if n == 0 || src.methods[n-1].fn != fn {
		src.methods = append(src.methods, &methodDirectives{fn: fn})
		n++
	}
	src.methods[n-1].directives = append(src.methods[n-1].directives, d)
}

// directive returns the directive in a comment, or nil. It reports what was
// meant as one and is none. A package's documentation may speak of directives,
// and so may code that is quoted in a block comment outside of an interface.
func (src *sourceFile) directive(c *ast.Comment, packageDoc bool, report reportFunc) *directive {
	if strings.HasPrefix(c.Text, directivePrefix) {
		d := parseDirective(c.Text, c.Pos(), report)
		if d != nil && d.imports != nil {
			src.imports = append(src.imports, d.imports)
		}
		return d
	}
	if packageDoc {
		return nil
	}
	if text, ok := strings.CutPrefix(c.Text, "//"); ok {
		if options := findNearMiss(text); options != "" {
			report(c.Pos(), "this comment is not a directive and limits nothing: write %s%s", directivePrefix, options).
				over(c.Text).fix(c.Pos(), len(c.Text), directivePrefix+options, "make it a directive")
		}
		return nil
	}
	offset := 0
	for line := range strings.Lines(c.Text) {
		text := strings.TrimLeft(line, "/* \t")
		quoted := strings.HasSuffix(line[:len(line)-len(text)], "//") && !src.inInterface(c)
		if options := findNearMiss(strings.TrimRight(text, "*/ \t\r\n")); options != "" && !quoted {
			report(c.Pos()+token.Pos(offset+len(line)-len(text)), "a directive in a block comment limits nothing: write it as a line of its own, %s%s", directivePrefix, options).over(text)
		}
		offset += len(line)
	}
	return nil
}

func (src *sourceFile) inInterface(c *ast.Comment) bool {
	found := false
	ast.Inspect(src.ast, func(n ast.Node) bool {
		t, ok := n.(*ast.InterfaceType)
		found = found || ok && t.Pos() < c.Pos() && c.End() < t.End()
		return !found
	})
	return found
}

// owners returns the doc comments in which directives have a meaning, and the
// declarations that surround or own all other comments.
func owners(file *ast.File) (map[*ast.CommentGroup]owner, []ast.Node) {
	owned := map[*ast.CommentGroup]owner{}
	var places []ast.Node
	for _, decl := range file.Decls {
		places = append(places, decl)
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Doc != nil && receiverName(fn) != "" {
			owned[fn.Doc] = owner{fn: fn}
		}
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, s := range gen.Specs {
			spec := s.(*ast.TypeSpec)
			doc := spec.Doc
			if doc == nil && !gen.Lparen.IsValid() {
				doc = gen.Doc
			}
			iface, isIface := spec.Type.(*ast.InterfaceType)
			if doc != nil && (isIface || isNamed(spec.Type)) {
				owned[doc] = owner{spec: spec}
			}
			if !isIface {
				continue
			}
			for _, f := range iface.Methods.List {
				if _, isFunc := f.Type.(*ast.FuncType); isFunc && f.Doc != nil && len(f.Names) == 1 {
					owned[f.Doc] = owner{spec: spec, method: f.Names[0].Name}
				}
			}
		}
	}
	return owned, places
}

// isNamed reports whether a type expression is the name of a type, which may
// be an interface's.
func isNamed(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident, *ast.SelectorExpr:
		return true
	case *ast.IndexExpr:
		return isNamed(e.X)
	case *ast.IndexListExpr:
		return isNamed(e.X)
	case *ast.ParenExpr:
		return isNamed(e.X)
	}
	return false
}
