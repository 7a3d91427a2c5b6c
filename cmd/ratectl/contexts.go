package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/nearest"
)

// A config is the file with the contexts: what to reach, by name.
type config struct {
	Current  string                    `json:"current"` // the context without -context
	Contexts map[string]map[string]any `json:"contexts"`

	named string // by -context
	dir   string // of the file
	read  bool
	err   error // why it cannot be used
}

// inContext are the flags that a context may set, and their variables of the
// environment. Passwords are no flags, so a context has none.
var inContext = map[string]string{
	"redis": "RATECTL_REDIS", "user": "RATECTL_USER", "namespace": "RATECTL_NAMESPACE", "overrides": "RATECTL_OVERRIDES", "rules": "RATECTL_RULES", "page": "RATECTL_PAGE", "postgres": "RATECTL_POSTGRES",
	"cluster": "", "sentinel": "", "sentinel-user": "", "sentinel-password-file": "", "password-file": "", "refused-secret-file": "", "db": "", "timeout": "",
	"tls": "", "tls-ca": "", "tls-cert": "", "tls-key": "", "tls-name": "",
}

// paths are the settings that name a file, relative to the directory of the config.
var paths = []string{"rules", "password-file", "sentinel-password-file", "refused-secret-file", "tls-ca", "tls-cert", "tls-key"}

// load reads the file once. Without -context and RATECTL_CONFIG there may be none.
func (c *config) load(p *program, needed bool) error {
	if !c.read {
		c.read, c.err = true, c.readFile(p, needed || c.named != "")
	}
	return c.err
}

func (c *config) readFile(p *program, needed bool) error {
	path := p.getenv("RATECTL_CONFIG")
	needed = needed || path != ""
	if path == "" {
		dir := p.getenv("XDG_CONFIG_HOME")
		if home := p.getenv("HOME"); dir == "" && home != "" {
			dir = filepath.Join(home, ".config")
		}
		if dir == "" && !needed {
			return nil
		}
		path = filepath.Join(dir, "ratectl", "config.json")
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !needed {
		return nil
	}
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		decoder.UseNumber()
		err = decoder.Decode(c)
	}
	if err != nil {
		return usagef("read the contexts: %s: %v", path, err)
	}
	c.dir = filepath.Dir(path)
	return c.check(path)
}

func (c *config) check(path string) error {
	for _, name := range c.names() {
		for _, setting := range slices.Sorted(maps.Keys(c.Contexts[name])) {
			if _, is := inContext[setting]; !is {
				return usagef("%s: context %q: unknown setting %q: there are %s; a password belongs into the file of password-file, or RATECTL_PASSWORD", path, name, setting, strings.Join(slices.Sorted(maps.Keys(inContext)), ", "))
			}
		}
	}
	if _, is := c.Contexts[c.Current]; c.Current != "" && !is {
		return usagef("%s: current is %q, and no context has that name", path, c.Current)
	}
	if _, is := c.Contexts[c.named]; c.named != "" && !is {
		return usagef("no context has the name %q%s; ratectl contexts lists them", c.named, nearest.Hint(c.named, c.names()))
	}
	return nil
}

func (c *config) names() []string { return slices.Sorted(maps.Keys(c.Contexts)) }

// lookup returns what holds for a flag that the command line does not have. A context that the
// command line names goes before the environment; the current context of the file does not.
func (c *config) lookup(p *program, flag string) (string, bool) {
	if variable := inContext[flag]; c.named == "" && variable != "" {
		if text := p.getenv(variable); text != "" {
			return text, true
		}
	}
	if c.load(p, false) != nil {
		return "", false
	}
	value, is := c.Contexts[cmp.Or(c.named, c.Current)][flag]
	if !is {
		return "", false
	}
	text := fmt.Sprint(value)
	if slices.Contains(paths, flag) && text != "" && !filepath.IsAbs(text) && text != "-" && !isPage(text) {
		text = filepath.Join(c.dir, text)
	}
	return text, true
}

func isPage(rules string) bool {
	return strings.HasPrefix(rules, "http://") || strings.HasPrefix(rules, "https://")
}

type contextLine struct {
	Name      string `json:"name"`
	Current   bool   `json:"current"`
	Redis     string `json:"redis,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Overrides string `json:"overrides,omitempty"`
	Rules     string `json:"rules,omitempty"`
}

func (l contextLine) row() []string {
	return []string{map[bool]string{true: "*", false: "-"}[l.Current], l.Name, cmp.Or(l.Redis, "-"), cmp.Or(l.Namespace, "-"), cmp.Or(l.Overrides, "-"), cmp.Or(l.Rules, "-")}
}

func (s *session) listContexts(context.Context, []string) error {
	if err := s.config.load(s.program, true); err != nil {
		return err
	}
	var lines []contextLine
	for _, name := range s.config.names() {
		text := func(setting string) string {
			if value, is := s.config.Contexts[name][setting]; is {
				return withoutPassword(fmt.Sprint(value))
			}
			return ""
		}
		lines = append(lines, contextLine{name, name == s.config.Current, text("redis"), text("namespace"), text("overrides"), text("rules")})
	}
	return printEach(&s.printer, "CURRENT NAME REDIS NAMESPACE OVERRIDES RULES", lines, contextLine.row)
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

func (s *session) version(context.Context, []string) error {
	cli.VersionPrinter(s.flags)
	return nil
}
