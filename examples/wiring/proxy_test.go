package wiring

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/rategen/rategen/internal/check/docs"
)

// A proxy that has one version of rategen and refuses all other paths below it, as
// proxies of companies do. It leaves other modules to the next proxy.
func refusingProxy(t *testing.T) *httptest.Server {
	t.Helper()
	const path, version = "github.com/rategen/rategen", "v0.1.0"
	var archive bytes.Buffer
	if err := zip.CreateFromDir(&archive, module.Version{Path: path, Version: version}, "../.."); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string][]byte{
		"list":            []byte(version + "\n"),
		version + ".info": []byte(`{"Version": "` + version + `"}`),
		version + ".mod":  mod,
		version + ".zip":  archive.Bytes(),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ours := strings.CutPrefix(r.URL.Path, "/"+path+"/@v/")
		switch {
		case ours && answers[name] != nil:
			w.Write(answers[name])
		case strings.HasPrefix(r.URL.Path, "/github.com/rategen"):
			w.WriteHeader(http.StatusForbidden)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// goEnv returns what the go command says of its environment.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// Behind a proxy that refuses unknown modules go get finds no tool. The commands of the
// page add it.
func TestBehindRefusingProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("downloads modules")
	}
	dir := t.TempDir()
	env := append(os.Environ(),
		"GOPROXY="+refusingProxy(t).URL+",file://"+filepath.ToSlash(filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download"))+","+goEnv(t, "GOPROXY"),
		"GOMODCACHE="+t.TempDir(), "GOFLAGS=-modcacherw", "GOWORK=off", "GOPRIVATE=", "GONOPROXY=none", "GONOSUMDB=*", "GOSUMDB=off")
	run := func(args ...string) (string, error) {
		command := exec.Command(args[0], args[1:]...)
		command.Dir, command.Env = dir, env
		out, err := command.CombinedOutput()
		return string(out), err
	}
	if out, err := run("go", "mod", "init", "example.com/hello"); err != nil {
		t.Fatal(out)
	}
	if out, err := run("go", "get", "-tool", "github.com/rategen/rategen/cmd/rategen@v0.1.0"); err == nil || !strings.Contains(out, "403 Forbidden") {
		t.Errorf("go get: %v\n%s", err, out)
	}
	page, err := docs.Read("../../docs/wiring.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, b := range page.Blocks {
		if b.Language != "sh" || b.Section == editors {
			continue
		}
		for line := range strings.Lines(b.Text) {
			commands++
			if out, err := run(strings.Fields(line)...); err != nil {
				t.Fatalf("%s%v\n%s", line, err, out)
			}
		}
	}
	if out, err := run("go", "list", "tool"); err != nil || strings.TrimSpace(out) != "github.com/rategen/rategen/cmd/rategen" || commands != 2 {
		t.Errorf("after %d commands the tools are %q, %v", commands, out, err)
	}
}
