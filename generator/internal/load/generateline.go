package load

import (
	"bytes"
	"cmp"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/rategen/rategen/generator/internal/output"
)

// A generateLine is a //go:generate line that runs rategen for its own package.
type generateLine struct {
	pos   token.Position
	place *Place // nil: next to the interfaces
}

const generatePrefix = "//go:generate"

// generateLines returns the lines of a file that run rategen. It reads them as go generate
// does: from the files that are built with the tag generate, with its quotes, variables and
// names of commands.
func (p *Program) generateLines(d *dir, name string, content []byte) []generateLine {
	file := filepath.Join(d.dir, name)
	if !bytes.Contains(content, []byte(generatePrefix)) || !p.isGeneratedFrom(d, name, content) {
		return nil
	}
	clause, err := parser.ParseFile(token.NewFileSet(), "", content, parser.PackageClauseOnly)
	if err != nil {
		return nil
	}
	env := map[string]string{
		"GOROOT": build.Default.GOROOT, "GOARCH": p.list.arch(), "GOOS": cmp.Or(os.Getenv("GOOS"), goruntime.GOOS),
		"GOFILE": name, "GOPACKAGE": clause.Name.Name, "DOLLAR": "$", "PWD": d.dir,
	}
	var found []generateLine
	commands := map[string][]string{}
	number := 0
	for line := range bytes.Lines(content) {
		number++
		text, ok := strings.CutPrefix(string(line), generatePrefix)
		if !ok || text == "" || text[0] != ' ' && text[0] != '\t' {
			continue
		}
		words, ok := splitWords(text)
		if !ok || len(words) == 0 {
			break // go generate ends there
		}
		if command := commands[words[0]]; command != nil {
			words = slices.Concat(command, words[1:])
		}
		env["GOLINE"] = strconv.Itoa(number)
		for i, w := range words {
			words[i] = os.Expand(w, func(name string) string {
				if value, ok := env[name]; ok {
					return value
				}
				return os.Getenv(name)
			})
		}
		if words[0] == "-command" && len(words) > 1 {
			commands[words[1]] = slices.Clip(words[2:])
			continue
		}
		if i := slices.IndexFunc(words, isRategen); i >= 0 {
			if out, name, own := placeFlags(words[i+1:]); own {
				g := generateLine{pos: token.Position{Filename: file, Line: number, Column: 1}}
				if out != "" {
					g.place = &Place{Dir: absolute(out, d.dir), Name: name, Pos: g.pos}
				}
				found = append(found, g)
			}
		}
	}
	return found
}

// isGeneratedFrom reports whether go generate reads a file, which is built then.
func (p *Program) isGeneratedFrom(d *dir, name string, content []byte) bool {
	if !strings.Contains(output.BuildLines(content), "generate") {
		return !slices.Contains(d.ignored, name)
	}
	context := build.Default
	context.GOARCH = p.list.arch()
	context.BuildTags = append(strings.Split(p.cfg.Tags, ","), "generate")
	matches, err := context.MatchFile(d.dir, name)
	return err == nil && matches
}

// splitWords cuts a line into words, which may be Go strings. It reports whether go generate
// could.
func splitWords(line string) (words []string, ok bool) {
	const blanks = " \t\r\n"
	for {
		line = strings.TrimLeft(line, blanks)
		if line == "" {
			return words, true
		}
		if line[0] != '"' {
			end := strings.IndexAny(line, blanks)
			if end < 0 {
				return nil, false // the last line, and not complete
			}
			words, line = append(words, line[:end]), line[end:]
			continue
		}
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			return nil, false
		}
		word, _ := strconv.Unquote(quoted)
		if words, line = append(words, word), line[len(quoted):]; line == "" || !strings.ContainsRune(blanks, rune(line[0])) {
			return nil, false
		}
	}
}

func isRategen(word string) bool {
	name, _, _ := strings.Cut(path.Base(filepath.ToSlash(word)), "@")
	return name == "rategen" || name == "rategen.exe"
}

// placeFlags returns the flags -out and -pkg of a command line, and whether it
// generates for the package that it stands in.
func placeFlags(words []string) (out, name string, own bool) {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		flag, value, given := strings.Cut(strings.TrimLeft(words[0], "-"), "=")
		words = words[1:]
		if takesValue := flag == "out" || flag == "pkg" || flag == "tags"; takesValue && !given && len(words) > 0 {
			value, words = words[0], words[1:]
		}
		switch flag {
		case "out":
			out = value
		case "pkg":
			name = value
		}
	}
	return out, name, len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return w == "." || w == "./" || w == "./..." })
}
