package docs_test

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/check/docs"
	"github.com/rategen/rategen/internal/check/workspace"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/scratch"
	"github.com/rategen/rategen/internal/testkit/typecheck"
)

// imports are the packages that fragments of code use without an import, beside those below runtime.
var imports = map[string]string{
	"connect":    "connectrpc.com/connect",
	"context":    "context",
	"io":         "io",
	"iter":       "iter",
	"errors":     "errors",
	"echo":       "github.com/labstack/echo/v5",
	"fiber":      "github.com/gofiber/fiber/v2",
	"gin":        "github.com/gin-gonic/gin",
	"fmt":        "fmt",
	"grpc":       "google.golang.org/grpc",
	"http":       "net/http",
	"netip":      "net/netip",
	"os":         "os",
	"otel":       "go.opentelemetry.io/otel",
	"pb":         "google.golang.org/grpc/examples/route_guide/routeguide",
	"prometheus": "github.com/prometheus/client_golang/prometheus",
	"promhttp":   "github.com/prometheus/client_golang/prometheus/promhttp",
	"redis":      "github.com/redis/go-redis/v9",
	"rueidis":    "github.com/redis/rueidis",
	"runtime":    "github.com/rategen/rategen/runtime",
	"slog":       "log/slog",
	"time":       "time",
	"trace":      "go.opentelemetry.io/otel/trace",
}

// prelude declares what fragments take for granted.
const prelude = `package x

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

type (
	Employee struct{}
	Result   struct{}
	settings struct{}
)

func (settings) Int(context.Context, string) (int64, error) { return 0, nil }

var (
	addr                  string
	client                redis.UniversalClient
	ctx                   context.Context
	flags                 settings
	limiter               *runtime.Limiter
	orderRule, exportRule *runtime.Rule
	store                 *runtime.RedisStore
)
`

// employees is what README.md takes for granted: a service and what is generated for it.
const employees = `
type EmployeeService any

func NewRateLimitedEmployeeService(next EmployeeService, _ *runtime.Limiter) EmployeeService {
	return next
}

var plain EmployeeService
`

// Go code in the documentation is formatted, its directives are valid, and it
// compiles. A named block is a file: those of the tutorial make one package,
// and those of all other pages one with README.md. Others are fragments, in packages of
// their own: files, declarations, methods of an interface, or statements. All are type-checked,
// and those that need no other modules are vetted. A quick run does not vet, and leaves out
// packages that need other modules.
func TestGoCode(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	module := scratch.Module(t, root)
	scratch.Write(t, filepath.Join(module, "tool.go"), "package x\n")
	modules, err := workspace.Modules(root)
	if err != nil || len(modules) < 10 {
		t.Fatal("no modules", modules, err)
	}
	nested := slices.DeleteFunc(slices.Clone(modules), func(dir string) bool { return dir == "." })
	t.Setenv("GOWORK", "off")
	if effort.Full() {
		path := filepath.Join(module, "go.work")
		limittest.OK(t, workspace.Write(path, root, modules, "."))
		t.Setenv("GOWORK", path)
	}
	dirs := map[string]bool{} // those that need no other module
	for path, p := range pages(t) {
		if path == "README.zh-CN.md" {
			continue // its blocks are those of README.md
		}
		for _, b := range p.Blocks {
			if b.Language != "go" {
				continue
			}
			place := fmt.Sprintf("%s:%d", path, b.Line)
			dir, name := "named", b.Name
			if path == "docs/tutorial.md" {
				dir = "tutorial"
			}
			if name == "" {
				dir, name = strings.NewReplacer("/", "_", ".", "_", ":", "_", "-", "_").Replace(strings.ToLower(place)), "x.go"
			}
			file, err := complete(b)
			if err != nil {
				t.Errorf("%s: %v", place, err)
				continue
			}
			if strings.HasPrefix(file, "package x\n") { // a file has a package of its own
				given := prelude
				if path == "README.md" {
					given += employees
				}
				// A name of its own, too: fragments are parts of different programs.
				own := func(file string) string { return strings.Replace(file, "package x\n", "package "+dir+"\n", 1) }
				scratch.Write(t, filepath.Join(module, dir, "prelude.go"), own(given))
				file = own(file)
			}
			scratch.Write(t, filepath.Join(module, dir, name), file)
			alone, known := dirs[dir]
			dirs[dir] = (alone || !known) && !needsMore(file, nested)
		}
	}
	left := len(dirs)
	for dir, alone := range dirs {
		if !alone && !effort.Full() {
			left--
			limittest.OK(t, os.RemoveAll(filepath.Join(module, dir)))
		}
	}
	if left < 20 {
		t.Errorf("%d packages of %d are compiled", left, len(dirs))
	}
	result, err := generator.Run(generator.Config{Dir: module, Patterns: []string{"./..."}})
	limittest.OK(t, err)
	if len(result.Files) < 3 {
		t.Errorf("%d files were generated", len(result.Files))
	}
	for _, w := range result.Warnings {
		t.Errorf("an example is warned of: %v", w)
	}
	typecheck.Test(t, module, "./...")
	if !effort.Full() {
		return
	}
	vet := []string{"vet"} // what needs other modules would have these compiled
	for dir, alone := range dirs {
		if alone {
			vet = append(vet, "./"+dir)
		}
	}
	cmd := exec.Command("go", vet...)
	cmd.Dir, cmd.Env = module, append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %v\n%s", cmd, err, out)
	}
}

// needsMore reports whether a file imports packages of other modules than rategen's, which
// the runtime does not need anyway.
func needsMore(file string, nested []string) bool {
	parsed, err := parser.ParseFile(token.NewFileSet(), "x.go", file, parser.ImportsOnly)
	return err != nil || slices.ContainsFunc(parsed.Imports, func(i *ast.ImportSpec) bool {
		path := strings.Trim(i.Path.Value, `"`)
		if own, ok := strings.CutPrefix(path, "github.com/rategen/rategen/"); ok {
			return slices.ContainsFunc(nested, func(dir string) bool { return strings.HasPrefix(own+"/", dir+"/") })
		}
		return strings.Contains(path, ".") && !strings.HasPrefix(path, "github.com/redis/go-redis/")
	})
}

// complete returns a block of code as a file of package x.
func complete(b docs.Block) (string, error) {
	if _, err := parse(b.Text); err == nil {
		return b.Text, formatted(b.Text)
	}
	var first error
	for _, form := range []struct{ before, after string }{
		{"", ""},
		{"type fragment interface {\n", "}\n"},
		{"func fragment() {\n", "}\n"},
	} {
		text := form.before + b.Text + form.after
		file, err := parse("package x\n" + text)
		if err != nil {
			if first == nil || form.after == "" {
				first = err
			}
			continue
		}
		if form.before == "" {
			err = formatted(b.Text)
		}
		if uses := unused(file); len(uses) > 0 {
			text = strings.TrimSuffix(text, form.after) + strings.Join(uses, "\n") + "\n" + form.after
		}
		return "package x\n" + importsOf(file) + text, err
	}
	return "", first
}

func parse(text string) (*ast.File, error) {
	return parser.ParseFile(token.NewFileSet(), "x.go", text, parser.ParseComments|parser.SkipObjectResolution)
}

func formatted(text string) error {
	if got, err := format.Source([]byte(text)); err != nil || string(got) != text {
		return fmt.Errorf("not formatted by gofmt: %v", err)
	}
	return nil
}

// importsOf returns import declarations for the packages that a file uses.
func importsOf(file *ast.File) string {
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && importOf(x.Name) != "" && !slices.Contains(names, x.Name) {
				names = append(names, x.Name)
			}
		}
		return true
	})
	text := ""
	for _, name := range names {
		text += fmt.Sprintf("import %s %q\n", name, importOf(name))
	}
	return text
}

// importOf returns the path of the package that a fragment means by a name, or "".
func importOf(name string) string {
	if runtime := "runtime/" + name; isDir(runtime) {
		return "github.com/rategen/rategen/" + runtime
	}
	return imports[name]
}

// unused returns statements that use the variables of fragments of statements.
func unused(file *ast.File) (uses []string) {
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Name.Name != "fragment" {
			continue
		}
		for _, stmt := range fn.Body.List {
			if assign, ok := stmt.(*ast.AssignStmt); ok && assign.Tok == token.DEFINE {
				for _, x := range assign.Lhs {
					if id, ok := x.(*ast.Ident); ok && id.Name != "_" {
						uses = append(uses, "_ = "+id.Name)
					}
				}
			}
		}
	}
	return uses
}
