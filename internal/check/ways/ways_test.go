package ways

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

const (
	module = "github.com/rategen/rategen/"
	page   = "files.md"
	begin  = "<!-- files that calls enter: go test ./internal/check/ways -write -->\n"
	end    = "<!-- end of files -->\n"
)

var write = flag.Bool("write", false, "write the table into files.md")

// kinds are the calls that the table has a column for, and the most files that each may
// enter. Raise none of these: a feature that has a file of its own on every call's way costs
// every reader.
var kinds = []struct {
	name, title string
	most        int
}{
	{"call", "a call on Redis", 22},
	{"lease", "a call that a lease decides", 10},
	{"permit", "a permit, taken and returned", 27},
}

// TestWays executes calls, and wants the table of the files that they enter to be true.
func TestWays(t *testing.T) {
	if !effort.Full() && !*write {
		t.Skip("a full run counts the files that calls enter")
	}
	server := redistest.Start(t)
	binary := filepath.Join(t.TempDir(), "way")
	run(t, "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+module+"...", "-o", binary, "./way")
	table := map[string][]string{} // by package: the files of each kind
	for i, kind := range kinds {
		files := entered(t, binary, server.Addr, kind.name)
		if len(files) > kind.most {
			t.Errorf("%s enters %d files, more than %d", kind.title, len(files), kind.most)
		}
		for _, file := range files {
			dir := path.Dir(file)
			if table[dir] == nil {
				table[dir] = make([]string, len(kinds))
			}
			table[dir][i] += " " + strings.TrimSuffix(path.Base(file), ".go")
		}
		total := strconv.Itoa(len(files))
		if table["~"] == nil {
			table["~"] = make([]string, len(kinds))
		}
		table["~"][i] = " " + total
	}
	compare(t, text(table))
}

// text returns the table as it stands in the page.
func text(table map[string][]string) string {
	var b strings.Builder
	b.WriteString("\n| package |")
	for _, kind := range kinds {
		b.WriteString(" " + kind.title + " |")
	}
	b.WriteString("\n|---" + strings.Repeat("|---", len(kinds)) + "|\n")
	for _, dir := range slices.Sorted(maps.Keys(table)) {
		name := "`" + dir + "`"
		if dir == "~" {
			name = "files"
		}
		fmt.Fprintf(&b, "| %s |%s |\n", name, strings.Join(table[dir], " |"))
	}
	return b.String() + "\n"
}

// compare wants the page to have the table, or writes it there.
func compare(t *testing.T, want string) {
	t.Helper()
	content, err := os.ReadFile(page)
	limittest.OK(t, err)
	before, rest, found := strings.Cut(string(content), begin)
	got, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no table between %q and %q", page, begin, end)
	} else if *write {
		limittest.OK(t, os.WriteFile(page, []byte(before+begin+want+end+after), 0o644))
	} else if got != want {
		t.Errorf("the table of files in %s is not true: run go test ./internal/check/ways -write. It has to be\n%s\nand is\n%s", page, want, got)
	}
}

// entered returns the files of the runtime that most calls of a kind enter.
func entered(t *testing.T, binary, address, kind string) (files []string) {
	t.Helper()
	dir := t.TempDir()
	run(t, binary, address, dir, kind)
	calls := map[string]int{}
	for i := range Calls {
		text := filepath.Join(dir, "text")
		run(t, "go", "tool", "covdata", "textfmt", "-i="+filepath.Join(dir, strconv.Itoa(i)), "-o="+text)
		content, err := os.ReadFile(text)
		limittest.OK(t, err)
		found := map[string]bool{}
		for line := range strings.Lines(string(content)) { // file:from,to statements count
			file, block, _ := strings.Cut(strings.TrimSpace(line), ":")
			file = strings.TrimPrefix(file, module)
			if count := block[strings.LastIndexByte(block, ' ')+1:]; count != "0" && !strings.HasPrefix(file, "internal/check/") && file != "mode" {
				found[file] = true
			}
		}
		for file := range found {
			calls[file]++
		}
	}
	for _, file := range slices.Sorted(maps.Keys(calls)) {
		if calls[file] > Calls/2 {
			files = append(files, file)
		}
	}
	return files
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
}
