package main

import (
	"context"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratepage"
)

var write = flag.Bool("write", false, "write the commands into docs/ratectl.md")

// The page of the documentation has what the table of commands says. After a
// change of that run: go test ./cmd/ratectl -run Manual -write
func TestManual(t *testing.T) {
	t.Parallel()
	const page, begins, ends = "../../docs/ratectl.md", "<!-- commands -->\n", "<!-- /commands -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begins)
	is, after, ended := strings.Cut(rest, ends)
	if !found || !ended {
		t.Fatalf("%s has no %s", page, begins)
	}
	if *write {
		if err := os.WriteFile(page, []byte(before+begins+markdown()+ends+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(markdown(), is); diff != "" {
		t.Errorf("run: go test ./cmd/ratectl -run Manual -write\n(-want +got):\n%s", diff)
	}
}

// Every command has help, which needs neither Redis nor rules.
func TestHelp(t *testing.T) {
	t.Parallel()
	b := &bench{}
	for _, c := range commands {
		for _, args := range [][]string{append(strings.Fields(c.name), "-h"), append([]string{"help"}, strings.Fields(c.name)...)} {
			a := b.run(args...)
			if c.name == "help" && args[0] == "help" {
				continue // that is the overview
			}
			if a.code != 0 || a.err != "" || !strings.HasPrefix(a.out, "Usage: ratectl "+c.name+" ") {
				t.Errorf("%q: exit code %d, %q, %q", args, a.code, a.out, a.err)
			}
		}
		if !strings.Contains(overview(), "  "+strings.TrimSpace(c.name+" "+c.args)+" ") {
			t.Errorf("the overview lacks %s", c.name)
		}
	}
	b.run("-h").wants(t, 0, "ratectl shows.*Exit codes:.*", "")
	b.run("help", "markdown").wants(t, 0, ".*override set.*", "")
	page := b.run("help", "man").out
	for _, c := range commands {
		if !strings.Contains(page, "\n.SH "+roff.Replace(strings.ToUpper(c.name))+"\n") {
			t.Errorf("the page for man lacks %s", c.name)
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
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?m)(?:^ *|`)ratectl ([a-z][^`\n]*)")
	checked := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		prose, _, _ := strings.Cut(string(text), "<!-- commands -->\n| command") // that is made from the table
		for _, m := range shown.FindAllStringSubmatch(prose, -1) {
			line, _, _ := strings.Cut(m[1], " | ")
			c, args, err := find(strings.Fields(strings.ReplaceAll(line, "'", "")))
			if err == nil && c != nil {
				_, err = parse(c.flagSet(new(options), func(string) string { return "" }), args)
			}
			if checked++; err != nil {
				t.Errorf("%s: ratectl %s: %v", page, line, err)
			}
		}
	}
	if checked < 25 {
		t.Errorf("%d commands", checked)
	}
}

// A shell completes commands and flags.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := (&bench{}).run("completion", shell)
		script.wants(t, 0, ".*fix-expiry.*override.*", "")
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
	script, _ := completion([]string{"bash"})
	for line, want := range map[string]string{
		"re":                     "reset release",
		"override ":              "set ls rm",
		"override r":             "rm",
		"override set x -un":     "-until",
		"shadow ":                "on off",
		"keys login.user -sta":   "-state",
		"completion f":           "fish",
		"inspect login.user -pa": "-parts -password-file",
	} {
		words := append(strings.Fields(line), "")
		if !strings.HasSuffix(line, " ") {
			words = words[:len(words)-1]
		}
		ask := exec.Command(bash, "--norc", "-c", script+`COMP_WORDS=(ratectl "$@"); COMP_CWORD=$#; _ratectl; echo "${COMPREPLY[*]}"`, "bash")
		ask.Args = append(ask.Args, words...)
		out, err := ask.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: completed by %q, %v, want %q", line, got, err, want)
		}
	}
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
