package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The modules that go get is tried in: an empty one, one that uses gRPC at the oldest
// version that package rategrpc works with, and one that uses an old golang.org/x/tools,
// which the generator needs.
const (
	emptyProgram = "package main\n\nfunc main() {}\n"
	grpcProgram  = "package main\n\nimport \"google.golang.org/grpc\"\n\nfunc main() { grpc.NewServer() }\n"
	toolsProgram = "package main\n\nimport _ \"golang.org/x/tools/go/packages\"\n\nfunc main() {}\n"
	grpcRequired = `require (
	github.com/golang/protobuf v1.5.3 // indirect
	golang.org/x/net v0.18.0 // indirect
	golang.org/x/sys v0.14.0 // indirect
	golang.org/x/text v0.14.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20231106174013-bbf56f31fb17 // indirect
	google.golang.org/grpc v1.61.0
	google.golang.org/protobuf v1.31.0 // indirect
)
`
	toolsRequired = `require (
	golang.org/x/mod v0.23.0 // indirect
	golang.org/x/sync v0.11.0 // indirect
	golang.org/x/tools v0.30.0
)
`
)

// packages returns the packages of this repository that programs import, but for those
// of generator, each with the directory of its module.
func packages(checkout string) (map[string]string, error) {
	all := map[string]string{"runtime": ".", "generator/golangci": "generator/golangci"}
	nested, err := filepath.Glob(filepath.Join(checkout, "runtime", "*", "go.mod"))
	for _, file := range nested {
		dir, _ := filepath.Rel(checkout, filepath.Dir(file))
		all[filepath.ToSlash(dir)] = dir
	}
	return all, err
}

// got returns a table of what go get of each package changes in a go.mod.
func got(checkout string) (string, error) {
	all, err := packages(checkout)
	if err != nil {
		return "", err
	}
	var replaces strings.Builder
	for _, dir := range all {
		path := "github.com/rategen/rategen"
		if dir != "." {
			path += "/" + filepath.ToSlash(dir)
		}
		fmt.Fprintf(&replaces, "replace %s => %s\n", path, filepath.Join(checkout, dir))
	}
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	var out strings.Builder
	out.WriteString("| `go get` of | lines in an empty `go.mod` | lines added beside grpc 1.61 | versions changed there | beside x/tools 0.30 |\n|---|---:|---:|---|---|\n")
	for _, name := range names {
		lines, _, err := get(name, replaces.String(), "", emptyProgram)
		if err != nil {
			return "", err
		}
		more, changed, err := get(name, replaces.String(), grpcRequired, grpcProgram)
		if err != nil {
			return "", err
		}
		_, moved, err := get(name, replaces.String(), toolsRequired, toolsProgram)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "| `%s` | %d | %d | %s | %s |\n", name, lines, more, strings.Join(changed, ", "), strings.Join(moved, ", "))
	}
	return out.String(), nil
}

// get adds a package to a program, and returns how many modules are required that were not,
// and which versions have changed.
func get(name, replaces, required, program string) (more int, changed []string, err error) {
	dir, err := os.MkdirTemp("", "get")
	if err != nil {
		return 0, nil, err
	}
	defer os.RemoveAll(dir)
	for file, text := range map[string]string{"go.mod": "module example.com/footprint\n\ngo 1.26.0\n\n" + required + "\n" + replaces, "main.go": program} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return 0, nil, err
		}
	}
	before, err := versions(dir)
	if err != nil {
		return 0, nil, err
	}
	// This is what go get and go mod tidy do together. Naming the version keeps the go
	// command from asking the network for modules that are replaced. It may ask for old
	// versions of others, which it compares and no module here has.
	module := "github.com/rategen/rategen"
	if name != "runtime" {
		module += "/" + name
	}
	if err := os.WriteFile(filepath.Join(dir, "get.go"), []byte("package main\n\nimport _ \"github.com/rategen/rategen/"+name+"\"\n"), 0o600); err != nil {
		return 0, nil, err
	}
	for _, args := range [][]string{{"edit", "-require", module + "@v0.0.0"}, {"tidy"}} {
		cmd := exec.Command("go", append([]string{"mod"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, nil, fmt.Errorf("go mod %v: %w\n%s", args, err, out)
		}
	}
	after, err := versions(dir)
	if err != nil {
		return 0, nil, err
	}
	for module, version := range after {
		switch old, ok := before[module]; {
		case !ok:
			more++
		case old != version:
			changed = append(changed, fmt.Sprintf("%s %s", module, strings.TrimSuffix(version, "+incompatible")))
		}
	}
	slices.Sort(changed)
	return more, changed, nil
}

// versions returns the modules that a go.mod requires, with their versions.
func versions(dir string) (map[string]string, error) {
	text, err := lines(dir, "go", "mod", "edit", "-print")
	if err != nil {
		return nil, err
	}
	required := map[string]string{}
	for _, line := range text {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) > 1 && strings.HasPrefix(fields[1], "v") {
			required[fields[0]] = fields[1]
		}
	}
	return required, nil
}
