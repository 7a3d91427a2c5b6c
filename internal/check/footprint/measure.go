package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A footprint is what a program has.
type footprint struct {
	required, summed, linked []string // modules
	binary, stripped         int64    // bytes
}

const (
	imports = `package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/redis/go-redis/v9"
%s)

func main() {
	client := redis.NewClient(&redis.Options{})
	fmt.Println(client.Ping(context.Background()).Err(), http.ListenAndServe(":0", nil))
%s}
`
	importRuntime = "\t\"github.com/rategen/rategen/runtime\"\n"
	useRuntime    = `	limiter := runtime.New(runtime.NewRedisStore(client))
	_, err := limiter.Take(context.Background(), (&runtime.Rule{Name: "r", Window: 1e9, Max: 1}).Limit(runtime.NewKey()))
	fmt.Println(err)
`
)

// measure builds a program with the runtime or without.
func measure(checkout string, runtime bool) (*footprint, error) {
	dir, err := os.MkdirTemp("", "footprint")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	source := fmt.Sprintf(imports, "", "")
	if runtime {
		source = fmt.Sprintf(imports, importRuntime, useRuntime)
	}
	mod := "module example.com/footprint\n\ngo 1.26.0\n\nreplace github.com/rategen/rategen => " + checkout + "\n"
	// Both programs have the client that this checkout has.
	client, err := command(checkout, "go", "list", "-m", "-f", "require {{.Path}} {{.Version}}", "github.com/redis/go-redis/v9")
	if err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"main.go": source, "go.mod": mod + client} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	if _, err := command(dir, "go", "mod", "tidy"); err != nil {
		return nil, err
	}
	f := new(footprint)
	if f.required, err = lines(dir, "go", "mod", "edit", "-print"); err != nil {
		return nil, err
	}
	f.required = modulesIn(f.required)
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return nil, err
	}
	f.summed = modulesIn(strings.Split(string(sums), "\n"))
	if f.linked, err = lines(dir, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} v{{end}}", "."); err != nil {
		return nil, err
	}
	f.linked = modulesIn(f.linked)
	if f.binary, err = build(dir); err != nil {
		return nil, err
	}
	f.stripped, err = build(dir, "-ldflags=-s -w")
	return f, err
}

// modulesIn returns the modules that lines name before a version, but for the program's
// own.
func modulesIn(lines []string) []string {
	var modules []string
	for _, line := range lines {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) > 1 && strings.HasPrefix(fields[1], "v") && fields[0] != "example.com/footprint" {
			modules = append(modules, fields[0])
		}
	}
	slices.Sort(modules)
	return slices.Compact(modules)
}

// added returns what is in after and not in before.
func added(before, after []string) []string {
	return slices.DeleteFunc(slices.Clone(after), func(m string) bool { return slices.Contains(before, m) })
}

func build(dir string, flags ...string) (int64, error) {
	binary := filepath.Join(dir, "binary")
	if _, err := command(dir, "go", append(append([]string{"build", "-o", binary}, flags...), ".")...); err != nil {
		return 0, err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func lines(dir, name string, args ...string) ([]string, error) {
	out, err := command(dir, name, args...)
	return strings.Split(out, "\n"), err
}

func command(dir, name string, args ...string) (string, error) {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	// The cache alone: no network is asked where rategen is, which the replace answers.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOSUMDB=off", "GOFLAGS=-buildvcs=false",
		"GOPROXY=file://"+filepath.ToSlash(filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %v: %w\n%s", name, args, err, stderr.Bytes())
	}
	return string(out), nil
}
