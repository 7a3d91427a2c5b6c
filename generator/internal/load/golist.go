package load

import (
	"cmp"
	"encoding/json"
	"errors"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/generator/internal/output"
)

// A goList is what the go command says about packages and everything they
// import.
type goList struct {
	dir   string
	flags []string
	pkgs  map[string]*listed // by import path
}

// A listed package is one entry of a goList, in the go command's words.
type listed struct {
	ImportPath     string
	Name           string
	Dir            string
	Export         string // the file of its export data, if the build cache has it
	Standard       bool
	DepOnly        bool // no pattern named it
	GoFiles        []string
	CgoFiles       []string
	IgnoredGoFiles []string
	Imports        []string
	ImportMap      map[string]string
	Module         *module
	Error          *struct{ Pos, Err string }
}

type module struct {
	Main               bool // or one of the workspace
	Path, Dir          string
	Version, GoVersion string
	Replace            *module
}

// isForeign reports whether a package belongs to no main module: to the standard
// library, or to a module that others only depend on.
func (l *listed) isForeign() bool { return l.Standard || l.Module != nil && !l.Module.Main }

// isDownloaded reports whether a package belongs to a version of a module in
// the module cache, or vendored, which nobody edits.
func (l *listed) isDownloaded() bool {
	m := l.Module
	for m != nil && m.Replace != nil {
		m = m.Replace
	}
	return m != nil && m.Version != ""
}

const listedFields = "ImportPath,Name,Dir,Export,Standard,DepOnly,GoFiles,CgoFiles,IgnoredGoFiles,Imports,ImportMap,Module,Error"

// errNoPackages stands for every failure of go list. Method why finds the reason.
var errNoPackages = errors.New("no packages")

// list adds the packages that patterns name, with all they import, and returns
// those named, sorted by path.
//
// The flag -n asks the go command for the export data that the build cache has
// and keeps it from compiling the rest: that is read from source.
func (l *goList) list(patterns []string) ([]*listed, error) {
	args := slices.Concat([]string{"list", "-e", "-deps", "-export", "-n", "-json=" + listedFields}, l.flags, []string{"--"}, patterns)
	cmd := exec.Command("go", args...)
	cmd.Dir = l.dir
	if os.Getenv("GOGC") == "" {
		cmd.Env = append(cmd.Environ(), "GOGC=400") // it ends before it has much garbage
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var named []*listed
	var parseErr error
	for decoder := json.NewDecoder(out); ; {
		p := &listed{}
		if parseErr = decoder.Decode(p); parseErr != nil {
			break
		}
		if !p.DepOnly {
			named = append(named, p)
		}
		if p.clashes() {
			p.leaveOutOwn()
		}
		if l.pkgs[p.ImportPath] == nil {
			l.pkgs[p.ImportPath] = p
		}
	}
	io.Copy(io.Discard, out) // the command must not block on what nobody reads
	if err := cmd.Wait(); err != nil || len(named) == 0 || parseErr != io.EOF {
		return nil, errNoPackages
	}
	slices.SortFunc(named, func(a, b *listed) int { return cmp.Compare(a.ImportPath, b.ImportPath) })
	return named, nil
}

// clashes reports whether the go command has found files of several packages in a directory.
func (l *listed) clashes() bool {
	return l.Error != nil && strings.HasPrefix(l.Error.Err, "found packages ")
}

// leaveOutOwn takes the files that rategen has written out of a package, and the clash if they
// alone have another name: that is what happens to them when a package is renamed.
func (l *listed) leaveOutOwn() {
	name := ""
	for _, file := range output.GoFiles(l.Dir) {
		content, err := os.ReadFile(filepath.Join(l.Dir, file))
		if err != nil || slices.Contains(l.IgnoredGoFiles, file) {
			continue
		}
		if output.IsOurs(content) {
			l.GoFiles = slices.DeleteFunc(l.GoFiles, func(name string) bool { return name == file })
			continue
		}
		own := packageName(content)
		if strings.HasSuffix(file, "_test.go") {
			own = strings.TrimSuffix(own, "_test")
		}
		if name != "" && own != "" && own != name {
			return
		}
		name = cmp.Or(own, name)
	}
	if name != "" {
		l.Name, l.Error = name, nil
	}
}

// addMissing adds packages that no listed one imports: those of test files, and of
// files that the go command could not read.
func (l *goList) addMissing(paths map[string]bool) {
	var missing []string
	for path := range paths {
		if path != "C" && path != "unsafe" && l.pkgs[path] == nil && l.pkgs["vendor/"+path] == nil {
			missing = append(missing, path)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		l.list(missing) // what cannot be listed is missed where it is imported
	}
}

// ask has the go command list something, and returns what it prints and what it says of errors.
func (l *goList) ask(args ...string) (out, said string, err error) {
	var stdout, stderr strings.Builder
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = l.dir, &stdout, &stderr
	err = cmd.Run()
	return strings.TrimSpace(stdout.String()), strings.TrimSpace(stderr.String()), err
}

// modules returns the directories of the main module, or of all modules of the workspace.
func (l *goList) modules() []string {
	out, _, _ := l.ask("-m", "-f", "{{.Dir}}")
	return strings.Split(out, "\n")
}

// explainNoPackages asks the go command why patterns name no packages: it says nothing of it
// where it is to go on after errors, or prints commands. First it is asked whether it can build
// anything at all, for such a system and with such a build cache.
func (l *goList) explainNoPackages(patterns []string) string {
	names := strings.Join(patterns, " ")
	_, text, err := l.ask(slices.Concat(l.flags, []string{"-export", "--", "internal/goarch"})...)
	if err == nil {
		_, text, err = l.ask(slices.Concat(l.flags, []string{"--"}, patterns)...)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "the go command is not on the PATH: install Go, or set PATH"
	}
	if err != nil {
		return "the go command cannot list " + names + ": " + cmp.Or(text, err.Error())
	}
	if text != "" {
		return "no packages match " + names + ": " + text
	}
	return "no packages match " + names
}

// isUntidy reports whether go.mod lacks what the generated code imports, if that is the first to do so.
func (l *goList) isUntidy(patterns []string) bool {
	if l.pkgs[naming.RuntimePath] != nil {
		return false
	}
	_, said, err := l.ask(slices.Concat(l.flags, []string{"--"}, patterns)...)
	return err != nil && strings.Contains(said, "go mod tidy")
}

// arch returns the processor that the go command builds for. It is read off a
// file of a package that every program has, which saves asking.
func (l *goList) arch() string {
	if p := l.pkgs["internal/goarch"]; p != nil {
		for _, name := range p.GoFiles {
			if arch, ok := strings.CutPrefix(filepath.Base(name), "zgoarch_"); ok {
				return strings.TrimSuffix(arch, ".go")
			}
		}
	}
	return cmp.Or(os.Getenv("GOARCH"), goruntime.GOARCH)
}

// openExport opens the export data of a package.
func (l *goList) openExport(path string) (io.ReadCloser, error) {
	p := l.pkgs[path]
	if p == nil || p.Export == "" {
		return nil, errors.New("the build cache has no export data of it")
	}
	return os.Open(p.Export)
}

// position returns where the go command places a package's error.
func (l *listed) position(dir string) token.Position {
	pos := parsePosition(l.Error.Pos)
	if pos.Filename != "" && !filepath.IsAbs(pos.Filename) {
		pos.Filename = filepath.Join(dir, pos.Filename)
	}
	return pos
}

// needsCgo reports whether a package imports "C" or, by any way, a package
// outside of the standard library that does and has no export data.
func (l *goList) needsCgo(root string) bool {
	return l.reaches(root, func(p *listed) bool { return len(p.CgoFiles) > 0 && (p.Export == "" || p.ImportPath == root) })
}

// reaches reports whether something is true of a package, or of one outside of the standard library that it imports by any way.
func (l *goList) reaches(root string, is func(*listed) bool) bool {
	seen := map[string]bool{}
	var check func(path string) bool
	check = func(path string) bool {
		p := l.pkgs[path]
		if p == nil || p.Standard || seen[path] {
			return false
		}
		seen[path] = true
		return is(p) || slices.ContainsFunc(p.Imports, check)
	}
	return check(root)
}
