package main

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratepage"
)

var write = flag.Bool("write", false, "write the commands into docs/ratectl.md")

// The page of the documentation has what the table of commands says. After a
// change of that run: go test ./cmd/ratectl -run Manual -write
func TestManual(t *testing.T) {
	t.Parallel()
	const page = "../../docs/ratectl.md"
	for mark, want := range map[string]string{"commands": markdown(commands()), "exits": "| exit code | meaning |\n|---|---|\n" + exitCodes("| %d | %s |\n")} {
		text, err := os.ReadFile(page)
		limittest.OK(t, err)
		begins, ends := "<!-- "+mark+" -->\n", "<!-- /"+mark+" -->"
		before, rest, found := strings.Cut(string(text), begins)
		is, after, ended := strings.Cut(rest, ends)
		if !found || !ended {
			t.Fatalf("%s has no %s", page, begins)
		}
		if *write {
			limittest.OK(t, os.WriteFile(page, []byte(before+begins+want+ends+after), 0o644))
		} else if diff := cmp.Diff(want, is); diff != "" {
			t.Errorf("run: go test ./cmd/ratectl -run Manual -write\n(-want +got):\n%s", diff)
		}
	}
}

// Every command has help, which needs neither Redis nor rules.
func TestHelp(t *testing.T) {
	t.Parallel()
	b := &bench{}
	list := b.run("-h").out
	for _, c := range commands() {
		for _, args := range [][]string{append(strings.Fields(c.name), "-h"), append([]string{"help"}, strings.Fields(c.name)...)} {
			a := b.run(args...)
			if c.name == "help" && args[0] == "help" {
				continue // that is the overview
			}
			if a.code != 0 || a.err != "" || !strings.HasPrefix(a.out, "Usage: ratectl "+c.name+" ") {
				t.Errorf("%q: exit code %d, %q, %q", args, a.code, a.out, a.err)
			}
		}
		if !strings.Contains(list, "  "+strings.TrimSpace(c.name+" "+c.args)+" ") {
			t.Errorf("the overview lacks %s", c.name)
		}
	}
	b.run("-h").wants(t, 0, "ratectl shows.*Exit codes:.*", "")
	b.run("help", "markdown").wants(t, 0, ".*override set.*", "")
	page := b.run("help", "man").out
	for _, c := range commands() {
		if name := c.name; !strings.Contains(page, "\n.SH "+roff.Replace(strings.ToUpper(name))+"\n") {
			t.Errorf("the page for man lacks %s", name)
		}
	}
	if check, err := exec.LookPath("groff"); err == nil {
		cmd := exec.Command(check, "-man", "-ww", "-Tascii", "-z")
		cmd.Stdin = strings.NewReader(page)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("groff: %v\n%s", err, out)
		}
	}
	b.run("help", "nothing").wants(t, 2, "", ".*unknown command.*")
}

// Every command line of ratectl's that the documentation shows can be parsed.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	limittest.OK(t, err)
	shown := regexp.MustCompile("(?m)(?:^ *|`)ratectl ([a-z][^`\n]*)")
	checked := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		limittest.OK(t, err)
		for _, m := range shown.FindAllStringSubmatch(string(text), -1) {
			line, _, _ := strings.Cut(m[1], " | ")
			p := &program{out: io.Discard, err: io.Discard, getenv: func(string) string { return "" }}
			tree, args := p.tree(), strings.Fields(strings.ReplaceAll(line, "'", ""))
			args, err := cut(tree, args).inOrder(tree, args)
			if err == nil {
				_ = tree.Walk(func(c *cli.Command) error {
					if len(c.Commands) == 0 {
						c.Action = func(context.Context, *cli.Command) error { return nil }
					}
					return nil
				})
				err = tree.Run(t.Context(), append([]string{"ratectl"}, args...))
			}
			checked++
			if err != nil {
				t.Errorf("%s: ratectl %s: %v", page, line, err)
			}
		}
	}
	if checked < 25 {
		t.Errorf("%d commands", checked)
	}
}

// A command that can change something has the flag -n.
func TestChangesHaveDryRun(t *testing.T) {
	t.Parallel()
	for _, c := range commands() {
		flags := strings.Fields(c.flags)
		if changes := slices.Contains(flags, "yes") || slices.Contains(flags, "m"); changes != slices.Contains(flags, "n") {
			t.Errorf("%s: changes something %t, has -n %t", c.name, changes, !changes)
		}
	}
}

// A shell completes commands, flags and their values.
func TestCompletion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := &bench{env: map[string]string{"RATECTL_RULES": filepath.Join(dir, "rules.jsonl"), "RATECTL_CONFIG": filepath.Join(dir, "config.json")}}
	for name, text := range map[string]string{"rules.jsonl": listing, "config.json": `{"contexts": {"orders": {}, "shop": {}}}`} {
		limittest.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	scripts := make(map[string]string)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := b.run("completion", shell)
		script.wants(t, 0, ".*"+completionFlag+".*", "")
		scripts[shell] = script.out
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		check := exec.Command(path, "-n")
		check.Stdin = strings.NewReader(script.out)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	document.Transcript(t, "testdata/completion.transcript", func(step, _ string) string {
		words := strings.Split(step, " ")
		if last := len(words) - 1; words[last] == "␣" {
			words[last] = ""
		}
		ask := exec.Command(bash, "--norc", "-c", scripts["bash"]+`ratectl() { "$RATECTL_TEST" "$@"; }
COMP_WORDS=(ratectl "$@"); COMP_CWORD=$#; __ratectl_bash_autocomplete; echo "${COMPREPLY[*]}"`, "bash")
		ask.Args = append(ask.Args, words...)
		ask.Env = append(os.Environ(), asCommand+"="+os.Args[0], "RATECTL_RULES="+b.env["RATECTL_RULES"], "RATECTL_CONFIG="+b.env["RATECTL_CONFIG"])
		out, err := ask.CombinedOutput()
		limittest.OK(t, err)
		return strings.TrimSpace(string(out))
	})
}

// The rates of a live page are shown, those rules first that refuse most.
func TestTopOfPage(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/limits/api/stream" || r.Header.Get("Authorization") != "Bearer x" {
			http.Error(w, "go away", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, line := range []string{
			"event: state\ndata: {\"rows\": [{\"name\": \"a\", \"n\": [9, 9, 9, 9]}]}\n\n",
			"event: frame\ndata: {\"point\": {\"seconds\": 1}, \"rows\": [{\"name\": \"a\", \"n\": [10, 0, 0, 0]}]}\n\n",
			"event: frame\ndata: {\"point\": {\"seconds\": 1}, \"rows\": [{\"name\": \"a\", \"n\": [10, 0, 0, 2]}, {\"name\": \"b\", \"n\": [1, 7, 3, 0]}]}\n\n",
		} {
			_, _ = w.Write([]byte(line))
		}
	}))
	defer server.Close()
	b := &bench{env: map[string]string{"RATECTL_PAGE_AUTHORIZATION": "Bearer x"}}
	b.run("top", "-page", server.URL+"/limits/").wants(t, 0, `RULE +REFUSED/S +ADMITTED/S +SHADOW/S +UNDECIDED/S\nb +3.5 +0.5 +1.5 +0.0\na +0.0 +10.0 +0.0 +1.0\n`, "")
	b.run("top", "-page", server.URL+"/limits", "-o", "json").wants(t, 0, `\{"rule":"b","admitted_per_s":0.5,"refused_per_s":3.5,.*\n\{"rule":"a".*`, "")
	b.run("top", "-page", server.URL+"/limits", "-count", "2").wants(t, 1, "RULE.*", "ratectl: page .*: the program has ended the stream\n")
	b.run("top", "-page", server.URL).wants(t, 1, "", "ratectl: page .*: no live page answers there: 403 Forbidden go away\n")
}

// The page itself is understood, under a prefix and while calls are made.
func TestTopOfLivePage(t *testing.T) {
	t.Parallel()
	page := ratepage.New()
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(page.Observer()), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	defer limiter.Close()
	rule := &runtime.Rule{Name: "live", Window: time.Hour, Max: 1}
	limiter.Register(rule)
	server := httptest.NewServer(http.StripPrefix("/limits", page))
	defer server.Close()
	defer page.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	calls.Go(func() {
		for ctx.Err() == nil {
			_, _ = limiter.Take(ctx, rule.Limit(nil))
			time.Sleep(time.Millisecond)
		}
	})
	// The first second may have begun before the calls.
	(&bench{}).run("top", "-page", server.URL+"/limits/", "-every", "1s", "-count", "3").wants(t, 0, `.*live +[1-9][\d.]* +[\d.]+ +0.0 +0.0\n.*`, "")
	cancel()
	calls.Wait()
}
