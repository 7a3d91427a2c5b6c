package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/rategen/rategen/internal/testkit/scratch"
)

// TestCommands plays every testdata/*.txtar, and those of rategen explain. A section is a file of a module, which is
// written, or a step, by its name:
//
//	rategen ARGUMENTS   runs rategen; below it stands what that prints, and how it ends if that is not 0
//	explain PLACE       is rategen explain PLACE
//	files               below it stand the files that there are, with their modes where nobody may write them
//	cat PATH            below it stands what is in a file
//	go ARGUMENTS        runs the go command, as people would do between runs of rategen
//	rm PATH, mv FROM TO, cp FROM TO, ln TARGET PATH, chmod MODE PATH, chop PATH (its last byte), cd PATH, env NAME=VALUE
//
// DIR is the directory of the module.
func TestCommands(t *testing.T) {
	own, _ := filepath.Glob("testdata/*.txtar")
	explained, _ := filepath.Glob("../../testdata/explain/*.txtar")
	if len(own) < 3 || len(explained) < 3 {
		t.Fatal("no scenarios")
	}
	for _, path := range append(own, explained...) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(archive.Files, func(f txtar.File) bool { return strings.HasPrefix(f.Name, "env ") }) {
				t.Parallel()
			}
			at := writeModule(t, map[string]string{"go.mod": module["go.mod"]})
			dir := at
			for i, f := range archive.Files {
				got, is := step(t, &at, dir, f.Name)
				if !is {
					scratch.Write(t, filepath.Join(dir, f.Name), string(f.Data))
					continue
				}
				archive.Files[i].Data = []byte(strings.ReplaceAll(got, dir, "DIR"))
				if diff := cmp.Diff(string(f.Data), string(archive.Files[i].Data)); diff != "" && !*update {
					t.Errorf("%s (-want +got):\n%s", f.Name, diff)
				}
			}
			if *update {
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// step does what a section says, if it is no file, and returns what is to stand below it.
func step(t *testing.T, at *string, dir, text string) (got string, is bool) {
	t.Helper()
	verb, rest, _ := strings.Cut(strings.ReplaceAll(text, "DIR", dir), " ")
	words := strings.Fields(rest)
	var err error
	switch verb {
	case "rategen", "explain":
		if verb == "explain" {
			words = append([]string{verb}, words...)
		}
		code, out, errs := rategen(*at, words...)
		got = out + errs
		if code != 0 {
			got += fmt.Sprintf("exit %d\n", code)
		}
	case "files":
		err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && d.IsDir() {
				path += "/"
			} else if err == nil && info.Mode()&0o200 == 0 {
				path += " " + info.Mode().String()
			}
			got += path + "\n"
			return err
		})
	case "cat":
		var content []byte
		content, err = os.ReadFile(filepath.Join(dir, rest))
		got = string(content)
	case "go":
		cmd := exec.Command(verb, words...)
		cmd.Dir = *at
		_, err = cmd.Output()
	case "rm":
		err = os.RemoveAll(filepath.Join(dir, words[0]))
	case "mv":
		err = os.Rename(filepath.Join(dir, words[0]), filepath.Join(dir, words[1]))
	case "cp":
		var content []byte
		if content, err = os.ReadFile(filepath.Join(dir, words[0])); err == nil {
			err = os.WriteFile(filepath.Join(dir, words[1]), content, 0o644)
		}
	case "ln":
		err = os.Symlink(words[0], filepath.Join(dir, words[1]))
	case "chmod":
		mode, _ := strconv.ParseUint(words[0], 8, 32)
		err = os.Chmod(filepath.Join(dir, words[1]), fs.FileMode(mode))
	case "chop":
		var info fs.FileInfo
		if info, err = os.Stat(filepath.Join(dir, rest)); err == nil {
			err = os.Truncate(filepath.Join(dir, rest), info.Size()-1)
		}
	case "cd":
		*at = filepath.Join(dir, words[0])
	case "env":
		name, value, _ := strings.Cut(rest, "=")
		t.Setenv(name, value)
	default:
		return "", false
	}
	if err != nil {
		t.Fatal(err)
	}
	return got, true
}
