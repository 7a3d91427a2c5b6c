package docs_test

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/check/docs"
	"github.com/rategen/rategen/internal/testkit/scratch"
)

// imports are the packages that fragments of code use without an import.
var imports = map[string]string{
	"adaptive":    "github.com/rategen/rategen/runtime/adaptive",
	"cmp":         "cmp",
	"connect":     "connectrpc.com/connect",
	"context":     "context",
	"errdetails":  "google.golang.org/genproto/googleapis/rpc/errdetails",
	"errors":      "errors",
	"expvar":      "expvar",
	"fmt":         "fmt",
	"grpc":        "google.golang.org/grpc",
	"http":        "net/http",
	"metadata":    "google.golang.org/grpc/metadata",
	"netip":       "net/netip",
	"override":    "github.com/rategen/rategen/runtime/override",
	"otel":        "go.opentelemetry.io/otel",
	"pb":          "github.com/rategen/rategen/examples/grpc/employeev1",
	"prometheus":  "github.com/prometheus/client_golang/prometheus",
	"promhttp":    "github.com/prometheus/client_golang/prometheus/promhttp",
	"rateconnect": "github.com/rategen/rategen/runtime/rateconnect",
	"rategrpc":    "github.com/rategen/rategen/runtime/rategrpc",
	"rateclient":  "github.com/rategen/rategen/runtime/rateclient",
	"ratefield":   "github.com/rategen/rategen/runtime/ratefield",
	"ratehttp":    "github.com/rategen/rategen/runtime/ratehttp",
	"rateotel":    "github.com/rategen/rategen/runtime/rateotel",
	"rateprom":    "github.com/rategen/rategen/runtime/rateprom",
	"ratepage":    "github.com/rategen/rategen/runtime/ratepage",
	"raterpc":     "github.com/rategen/rategen/runtime/raterpc",
	"ratetest":    "github.com/rategen/rategen/runtime/ratetest",
	"redis":       "github.com/redis/go-redis/v9",
	"runtime":     "github.com/rategen/rategen/runtime",
	"slog":        "log/slog",
	"status":      "google.golang.org/grpc/status",
	"strings":     "strings",
	"time":        "time",
	"trace":       "go.opentelemetry.io/otel/trace",
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
	Queue    struct{}
	settings struct{}
)

func (*Queue) Len() int { return 0 }

func (settings) Int(context.Context, string) (int64, error) { return 0, nil }

var (
	addr                  string
	client                redis.UniversalClient
	ctx                   context.Context
	flags                 settings
	limiter               *runtime.Limiter
	orderRule, exportRule *runtime.Rule
	store                 *runtime.RedisStore
	userID                string
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
// and those of all other pages one with README.md. Others are fragments, in packages of their own: files,
// declarations, methods of an interface, or statements.
func TestGoCode(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	module := scratch.Module(t, root)
	scratch.Write(t, filepath.Join(module, "tool.go"), "package x\n")
	t.Setenv("GOWORK", workspace(t, module))
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
				scratch.Write(t, filepath.Join(module, dir, "prelude.go"), given)
			}
			scratch.Write(t, filepath.Join(module, dir, name), file)
		}
	}
	result, err := generator.Run(generator.Config{Dir: module, Patterns: []string{"./..."}})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Files) < 3 {
		t.Errorf("%d files were generated", len(result.Files))
	}
	for _, w := range result.Warnings {
		t.Errorf("an example is warned of: %v", w)
	}
	vet := exec.Command("go", "vet", "./...")
	vet.Dir = module
	if out, err := vet.CombinedOutput(); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}
}

// workspace writes a go.work with a module and those that are nested in rategen's, so
// that code may import them. It returns the path.
func workspace(t *testing.T, module string) string {
	t.Helper()
	text := "go 1.26.0\n\nuse .\n"
	for _, pattern := range []string{"runtime/*/go.mod", "examples/*/go.mod"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatal("no modules", pattern, err)
		}
		for _, path := range found {
			dir, err := filepath.Abs(filepath.Dir(path))
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf("use %q\n", dir)
		}
	}
	path := filepath.Join(module, "go.work")
	scratch.Write(t, path, text)
	return path
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
			if x, ok := sel.X.(*ast.Ident); ok && imports[x.Name] != "" && !slices.Contains(names, x.Name) {
				names = append(names, x.Name)
			}
		}
		return true
	})
	text := ""
	for _, name := range names {
		text += fmt.Sprintf("import %s %q\n", name, imports[name])
	}
	return text
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
