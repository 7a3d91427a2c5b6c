package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	packageCount   = 20
	interfacesEach = 5
	methodsEach    = 10
)

// A corpus is a module of annotated interfaces, once for each tool.
type corpus struct {
	parent   string
	dir      string // in use
	checkout string // of rategen
}

func packageName(i int) string { return fmt.Sprintf("p%02d", i) }

// enter makes the module of a tool the one in use, and writes it if it is not
// there.
func (c *corpus) enter(tool string) error {
	c.dir = filepath.Join(c.parent, tool)
	if _, err := os.Stat(c.dir); err == nil {
		return nil
	}
	return c.write()
}

// write writes the module, with go.mod and go.sum of this one.
func (c *corpus) write() error {
	for i := range packageCount {
		if err := c.writePackage(i, methodsEach); err != nil {
			return err
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(c.dir, name), content, 0o644); err != nil {
			return err
		}
	}
	edit := c.command("go", "mod", "edit", "-module=example.com/corpus", "-replace=github.com/rategen/rategen="+c.checkout)
	if out, err := edit.CombinedOutput(); err != nil {
		return fmt.Errorf("go mod edit: %v\n%s", err, out)
	}
	return nil
}

func (c *corpus) writePackage(i, methods int) error {
	name := packageName(i)
	var text strings.Builder
	fmt.Fprintf(&text, "package %s\n\nimport (\n\t\"context\"\n\t\"net/http\"\n\n\t\"github.com/redis/go-redis/v9\"\n)\n", name)
	for s := range interfacesEach {
		fmt.Fprintf(&text, "\ntype Service%d interface {\n", s)
		for m := range methods {
			fmt.Fprintf(&text, "\t//ratelimit:key=#id window=10s max=5\n"+
				"\tMethod%d(ctx context.Context, id string, req *http.Request, cmd redis.Cmder) (*http.Response, error)\n", m)
		}
		text.WriteString("}\n")
	}
	if err := os.MkdirAll(filepath.Join(c.dir, name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, name, "service.go"), []byte(text.String()), 0o644)
}

// removeGenerated removes what any generator has written.
func (c *corpus) removeGenerated() error {
	for i := range packageCount {
		dir := filepath.Join(c.dir, packageName(i))
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Name() != "service.go" {
				if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// command returns a command that runs in the module.
func (c *corpus) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	return cmd
}
