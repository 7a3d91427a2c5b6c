package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Commands that the documentation tells people to run exist: the packages and modules
// that go commands name, the scripts, the tools, and the flags that are rategen's own.
// CI runs those of README.md and docs/directive.md in modules of their own.
func TestCommands(t *testing.T) {
	checked := 0
	for from, p := range pages(t) {
		if from == "docs/tutorial.md" {
			continue // TestTutorial runs them
		}
		var lines []string
		for _, b := range p.Blocks {
			if b.Language == "sh" || b.Language == "bash" {
				lines = append(lines, strings.Split(b.Text, "\n")...)
			}
		}
		for _, span := range p.Code {
			if command.MatchString(span) {
				lines = append(lines, span)
			}
		}
		for _, line := range lines {
			line, _, _ = strings.Cut(line, " #")
			dir := "."
			if from == "bench/README.md" {
				dir = "bench"
			}
			for part := range strings.SplitSeq(line, "&&") {
				words := strings.Fields(part)
				for len(words) > 0 && strings.Contains(words[0], "=") {
					words = words[1:] // a variable
				}
				if len(words) == 2 && words[0] == "cd" {
					dir = filepath.Join(dir, words[1])
				}
				if len(words) == 0 || strings.HasPrefix(words[0], "#") || strings.Contains(part, "…") {
					continue
				}
				if why := check(t, dir, words); why != "" {
					t.Errorf("%s: %s: %s", from, line, why)
				}
				checked++
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d commands", checked)
	}
}

var command = regexp.MustCompile(`^([A-Z_]+=\S+ )*(go (run|test|tool|generate|vet)|bash|cd) `)

// foreign are commands of others, with how they are checked.
var foreign = map[string]string{
	"curl":                 "it reloads Prometheus, whose manual says so",
	"cd":                   "TestCommands follows it",
	"cp":                   ".ci/quickstart runs it",
	"export":               "it sets variables of the shell",
	"git":                  "it clones from the address that the path of the module names",
	"golangci-lint":        "it builds from the network, and was tried by hand",
	"./golangci-ratelimit": "golangci-lint builds it",
	"promtool":             ".ci/run checks and tests the alerts with it",
	"redis-cli":            "TestRedisCommands runs them",
	"source":               "TestCompletion of cmd/ratectl has bash read the script",
}

// check returns what is wrong with a command that is run in a directory.
func check(t *testing.T, dir string, words []string) string {
	if foreign[words[0]] != "" {
		return ""
	}
	if program := filepath.Join("cmd", words[0]); isDir(program) {
		return checkProgram(t, program, words[1:])
	}
	if len(words) < 2 || words[0] != "bash" && words[0] != "go" {
		return "nobody checks this command: have a test run it, or add it to foreign in internal/check/docs and say how it is checked"
	}
	switch {
	case words[0] == "bash":
		if _, err := os.Stat(filepath.Join(root, dir, words[1])); err != nil {
			return "there is no such script"
		}
	case words[1] == "get", words[1] == "install", words[1] == "mod":
		return checkModules(words[2:])
	case words[1] == "tool" && len(words) > 2:
		if strings.HasPrefix(words[2], "-modfile=") {
			words = words[1:]
		}
		if name := words[2]; name != "-n" {
			return checkProgram(t, filepath.Join("cmd", name), words[3:])
		}
	case words[1] == "run" || words[1] == "test":
		args := words[2:]
		for len(args) > 0 {
			arg := args[0]
			args = args[1:]
			local, ours := strings.CutPrefix(arg, "github.com/rategen/rategen/")
			switch {
			case ours:
			case strings.HasPrefix(arg, "."):
				local = filepath.Join(dir, arg)
			default:
				continue // a flag, or its value
			}
			if words[1] == "run" && arg == "." && dir == "." {
				return "" // the reader's own program
			}
			if words[1] == "run" {
				return checkProgram(t, local, args)
			}
			if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(local, "..."))); err != nil {
				return "there is no such package"
			}
		}
	}
	return ""
}

// isDir reports whether there is a directory in the repository.
func isDir(path string) bool {
	info, err := os.Stat(filepath.Join(root, path))
	return err == nil && info.IsDir()
}

// checkModules returns what is wrong with the packages of rategen's that a command
// names: after a flag, as a module that is replaced or as the directory of one.
func checkModules(args []string) string {
	for _, arg := range args {
		for name := range strings.SplitSeq(arg, "=") {
			name, _, _ = strings.Cut(name, "@")
			local, ours := strings.CutPrefix(name, "github.com/rategen/rategen")
			if !ours {
				local, ours = strings.CutPrefix(name, "/path/to/rategen")
			}
			if _, err := os.Stat(filepath.Join(root, local)); ours && err != nil {
				return "there is no package " + name
			}
		}
	}
	return ""
}

// checkProgram returns what is wrong with a call of a program of rategen's. Its
// flags must be named in its files, as in "-name" or "name".
func checkProgram(t *testing.T, dir string, args []string) string {
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil || len(files) == 0 {
		return "there is no program in " + dir
	}
	var source strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	for _, arg := range args {
		name, ok := strings.CutPrefix(arg, "-")
		name, _, _ = strings.Cut(name, "=")
		if ok && !strings.Contains(source.String(), `"`+name+`"`) && !strings.Contains(source.String(), "-"+name+" ") {
			return "it has no flag -" + name
		}
	}
	return ""
}
