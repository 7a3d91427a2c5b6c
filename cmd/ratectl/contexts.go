package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"runtime"
	"strings"

	"github.com/rategen/rategen/internal/buildversion"
)

// A contextLine is a context without its settings of TLS.
type contextLine struct {
	Name      string `json:"name"`
	Current   bool   `json:"current"`
	Redis     string `json:"redis,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Overrides string `json:"overrides,omitempty"`
	Rules     string `json:"rules,omitempty"`
}

func (l contextLine) row() []string {
	current := "-"
	if l.Current {
		current = "*"
	}
	return []string{current, l.Name, cmp.Or(l.Redis, "-"), cmp.Or(l.Namespace, "-"), cmp.Or(l.Overrides, "-"), cmp.Or(l.Rules, "-")}
}

// A contextsCommand lists the contexts.
type contextsCommand struct{ session }

func (c *contextsCommand) about() about {
	return about{
		name: "contexts", short: "list the contexts", needs: prints,
		long: "Lists the contexts in the file RATECTL_CONFIG, by default ratectl/config.json in $XDG_CONFIG_HOME or ~/.config.",
	}
}

func (c *contextsCommand) run(context.Context, []string) error {
	if err := c.config.load(c.program, true); err != nil {
		return err
	}
	var lines []contextLine
	for _, name := range c.config.names() {
		text := func(setting string) string {
			if value, is := c.config.Contexts[name][setting]; is {
				return withoutPassword(fmt.Sprint(value))
			}
			return ""
		}
		lines = append(lines, contextLine{name, name == c.config.Current, text("redis"), text("namespace"), text("overrides"), text("rules")})
	}
	return printEach(&c.printer, "CURRENT NAME REDIS NAMESPACE OVERRIDES RULES", lines, contextLine.row)
}

// withoutPassword returns a setting as it may be shown. No command takes a URL with a password, but
// a file may have one.
func withoutPassword(setting string) string {
	if !strings.Contains(setting, "://") {
		return setting
	}
	u, err := url.Parse(setting)
	if err != nil {
		return "no URL"
	}
	u.RawQuery, u.Fragment = "", ""
	return u.Redacted()
}

// A versionCommand prints which ratectl this is.
type versionCommand struct{ session }

func (c *versionCommand) about() about {
	return about{name: "version", short: "print the version", long: "Prints the versions of the command's module and of Go."}
}

func (c *versionCommand) run(context.Context, []string) error {
	_, _ = fmt.Fprint(c.out, version())
	return nil
}

func version() string {
	return fmt.Sprintf("ratectl %s, %s\n", buildversion.Version(), runtime.Version())
}
