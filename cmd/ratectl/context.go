package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A config is the file with the contexts: what to reach, by name.
type config struct {
	Current  string                    `json:"current"` // the context without -context
	Contexts map[string]map[string]any `json:"contexts"`
	dir      string                    // of the file
}

// inContext are the flags that a context may set, and their variables of the
// environment. Passwords are no flags, so a context has none.
var inContext = map[string]string{
	"redis": "RATECTL_REDIS", "user": "RATECTL_USER", "namespace": "RATECTL_NAMESPACE", "overrides": "RATECTL_OVERRIDES", "rules": "RATECTL_RULES", "page": "RATECTL_PAGE",
	"cluster": "", "sentinel": "", "sentinel-user": "", "sentinel-password-file": "", "password-file": "", "db": "", "timeout": "",
	"tls": "", "tls-ca": "", "tls-cert": "", "tls-key": "", "tls-name": "",
}

// paths are the settings that name a file, relative to the directory of the config.
var paths = []string{"rules", "password-file", "sentinel-password-file", "tls-ca", "tls-cert", "tls-key"}

// readConfig reads the file with the contexts. Without -context and RATECTL_CONFIG
// there may be none.
func (p *program) readConfig(needed bool) (c config, err error) {
	path := p.getenv("RATECTL_CONFIG")
	needed = needed || path != ""
	if path == "" {
		dir := p.getenv("XDG_CONFIG_HOME")
		if home := p.getenv("HOME"); dir == "" && home != "" {
			dir = filepath.Join(home, ".config")
		}
		if dir == "" && !needed {
			return c, nil
		}
		path = filepath.Join(dir, "ratectl", "config.json")
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !needed {
		return c, nil
	}
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		decoder.UseNumber()
		err = decoder.Decode(&c)
	}
	if err != nil {
		return c, usagef("read the contexts: %s: %v", path, err)
	}
	c.dir = filepath.Dir(path)
	for _, name := range slices.Sorted(maps.Keys(c.Contexts)) {
		for _, setting := range slices.Sorted(maps.Keys(c.Contexts[name])) {
			if _, is := inContext[setting]; !is {
				return c, usagef("%s: context %q: unknown setting %q: there are %s; a password belongs into the file of password-file, or RATECTL_PASSWORD", path, name, setting, strings.Join(slices.Sorted(maps.Keys(inContext)), ", "))
			}
		}
	}
	if _, is := c.Contexts[c.Current]; c.Current != "" && !is {
		return c, usagef("%s: current is %q, and no context has that name", path, c.Current)
	}
	return c, nil
}

// enter sets the flags that the context has and the command line does not. A context that the
// command line names goes before the environment; the current context of the file does not.
func (p *program) enter(f *flag.FlagSet, named string, given map[string]bool) error {
	c, err := p.readConfig(named != "")
	if err != nil {
		return err
	}
	name := cmp.Or(named, c.Current)
	settings, is := c.Contexts[name]
	if named != "" && !is {
		return usagef("no context has the name %q%s; ratectl contexts lists them", named, suggest(named, slices.Sorted(maps.Keys(c.Contexts))))
	}
	for setting, variable := range inContext {
		if given[setting] || f.Lookup(setting) == nil || named == "" && variable != "" && p.getenv(variable) != "" {
			continue
		}
		value, is := settings[setting]
		switch {
		case is:
			text := fmt.Sprint(value)
			if slices.Contains(paths, setting) && text != "" && !filepath.IsAbs(text) && text != "-" && !isPage(text) {
				text = filepath.Join(c.dir, text)
			}
			if err := f.Set(setting, text); err != nil {
				return usagef("context %q: %s is %q: %v", name, setting, text, err)
			}
		case named != "" && variable != "" && p.getenv(variable) != "": // another context's
			usual := ""
			if setting == "redis" {
				usual = "localhost:6379"
			}
			if err := f.Set(setting, usual); err != nil {
				return err
			}
		}
	}
	return nil
}

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
	return []string{map[bool]string{true: "*", false: "-"}[l.Current], l.Name, cmp.Or(l.Redis, "-"), cmp.Or(l.Namespace, "-"), cmp.Or(l.Overrides, "-"), cmp.Or(l.Rules, "-")}
}

// contexts prints the contexts.
func contexts(_ context.Context, o *operator, _ []string) error {
	c, err := o.readConfig(true)
	if err != nil {
		return err
	}
	var lines []contextLine
	for _, name := range slices.Sorted(maps.Keys(c.Contexts)) {
		text := func(setting string) string {
			if value, is := c.Contexts[name][setting]; is {
				return fmt.Sprint(value)
			}
			return ""
		}
		lines = append(lines, contextLine{name, name == c.Current, text("redis"), text("namespace"), text("overrides"), text("rules")})
	}
	return printEach(o, "CURRENT NAME REDIS NAMESPACE OVERRIDES RULES", lines, contextLine.row)
}
