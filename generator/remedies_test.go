package generator_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/testkit/scratch"
	"github.com/rategen/rategen/internal/testkit/typecheck"
	"golang.org/x/tools/txtar"
)

// remedyMethod is what a directive stands above that has no method.
const remedyMethod = "Do(ctx context.Context, id string, n int, plan *Plan) (out *Plan, err error)"

// remedyCode returns a case as the code of a file.
func remedyCode(n int, text string) string {
	text = strings.ReplaceAll(text, "$", fmt.Sprint(n))
	if strings.Contains(text, "type ") || strings.Contains(text, "func ") {
		return text
	}
	if lines := strings.Split(strings.TrimSpace(text), "\n"); strings.HasPrefix(lines[len(lines)-1], "/") {
		text += remedyMethod + "\n"
	}
	return fmt.Sprintf("type I%d interface {\n%s}\n", n, text)
}

// TestRemedies wants each code of testdata/remedies.txt to be refused with a remedy, and to generate and
// compile where that is followed.
func TestRemedies(t *testing.T) {
	content, err := os.ReadFile("../testdata/remedies.txt")
	if err != nil {
		t.Fatal(err)
	}
	module := scratch.Module(t, "..")
	cases := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n--\n")
	head := texts(txtar.Parse([]byte(cases[0])).Files)
	support, others, cases := head["support.go"]+"\n\n", strings.Split(head["others"], "\n"), cases[1:]
	remedied := "package good\n" + support
	for i, c := range cases {
		refused, right, _ := strings.Cut(c, "=>\n")
		write := func(dir, text string) {
			text = strings.NewReplacer("DIR", "example.com/x/"+dir, "package a\n", fmt.Sprintf("package a%d\n", i)).Replace(text)
			for _, file := range txtar.Parse([]byte(text)).Files {
				scratch.Write(t, filepath.Join(module, dir, file.Name), string(file.Data))
			}
		}
		if strings.HasPrefix(c, "-- ") {
			write(fmt.Sprintf("bad/%d", i), refused)
			write(fmt.Sprintf("good/%d", i), right+"\n")
			continue
		}
		scratch.Write(t, filepath.Join(module, "bad", fmt.Sprint(i), "a.go"), "package bad\n"+support+remedyCode(i, refused))
		remedied += remedyCode(i, right+"\n")
	}
	scratch.Write(t, filepath.Join(module, "good", "a.go"), remedied)
	said := map[string]string{} // of cases
	config := generator.Config{Dir: filepath.Join(module, "bad"), Patterns: []string{"./..."}}
	for _, d := range generate(t, config) {
		name, _, _ := strings.Cut(d.Pos.Filename, "/")
		said[name] += d.String() + "\n"
	}
	for i, c := range cases {
		name := fmt.Sprint(i)
		if said[name] == "" { // it is found only when all else is right
			config.Patterns = []string{"./" + name + "/..."}
			if found := generate(t, config); failed(found) {
				said[name] = found.Error()
			}
		}
		if !namesRemedy.MatchString(said[name]) {
			t.Errorf("no error with a remedy, but %q:\n%s", said[name], c)
		}
	}
	if found := generate(t, generator.Config{Dir: module, Patterns: []string{"./good/..."}}); failed(found) {
		t.Fatalf("remedies that do not help:\n%v", found)
	}
	typecheck.Test(t, module, "./good/...")
	var all strings.Builder
	for _, text := range said {
		all.WriteString(text)
	}
	for remedy, fits := range remediesOf(t, "internal/directive", "internal/expr", "internal/model", "internal/load", "../internal/spec") {
		if !fits.MatchString(all.String()) && !slices.ContainsFunc(others, func(part string) bool { return strings.Contains(remedy, part) }) {
			t.Errorf("nobody has tried the remedy of %s: add a case to testdata/remedies.txt", remedy)
		}
	}
}

// namesRemedy fits what tells somebody what to do.
var namesRemedy = regexp.MustCompile(`[:;,] (or )?(write|remove|declare|add|rename|use|leave|give|name|choose|limit|have|move|shorten|embed|convert|export|call) |did you mean|is not between|not known before|select a field|than the window|there are |it would be |not time.Duration|leave it out`)

// remediesOf returns the texts in the source of the generator that name a remedy, as expressions that fit
// what is said, by the place where they stand.
func remediesOf(t *testing.T, dirs ...string) map[string]*regexp.Regexp {
	found := map[string]*regexp.Regexp{}
	verb := regexp.MustCompile(`%(\\\.\d+)?[a-zA-Z]`)
	for _, dir := range dirs {
		paths, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if ok {
					if method, ok := call.Fun.(*ast.SelectorExpr); ok && (method.Sel.Name == "Warn" || method.Sel.Name == "Note") {
						return false
					}
				}
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, _ := strconv.Unquote(lit.Value)
				if namesRemedy.MatchString(text) {
					found[fset.Position(lit.Pos()).String()+": "+text] = regexp.MustCompile(verb.ReplaceAllString(regexp.QuoteMeta(text), `.*`))
				}
				return true
			})
		}
	}
	return found
}
