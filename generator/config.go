package generator

import (
	"os"
	"path/filepath"

	"github.com/rategen/rategen/generator/internal/cache"
	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/load"
	"github.com/rategen/rategen/generator/internal/output"
)

// A Config says what to generate.
type Config struct {
	// Dir is the directory in which the go command runs and to which paths
	// are shown relative. Empty means the current one.
	Dir string
	// Patterns name packages as for the go command. None means the package in
	// Dir.
	Patterns []string
	// Tags are build tags, separated by commas.
	Tags string
	// Check asks to write nothing and to say what would be written.
	Check bool
	// Out is the directory of another package that the wrappers are written
	// to, relative to Dir. Empty means next to the source files.
	Out string
	// Package is the name of the package in Out. Empty means the name that its
	// files have, or else that of the directory.
	Package string
	// CacheDir is where Run keeps a record of what was up to date, so that it
	// need not look again while nothing changes. Empty means nowhere.
	CacheDir string
}

// complete returns the configuration with its defaults.
func (cfg Config) complete() (Config, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return cfg, err
	}
	if real, err := os.Getwd(); err == nil && cfg.Dir == "" {
		dir = real
	}
	cfg.Dir = dir
	if len(cfg.Patterns) == 0 {
		cfg.Patterns = []string{"."}
	}
	return cfg, nil
}

// load returns what is to be loaded.
func (cfg Config) load() load.Config {
	return load.Config{Dir: cfg.Dir, Patterns: cfg.Patterns, Tags: cfg.Tags, Bare: cfg.Out != ""}
}

// openOut returns the output package, or nil if there is none.
func (cfg Config) openOut(report *diag.Reporter) (*output.Package, error) {
	if cfg.Out == "" {
		return nil, nil
	}
	dir := cfg.Out
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(cfg.Dir, dir)
	}
	return output.OpenPackage(dir, cfg.Package, report.Short)
}

// openRecord returns the record of runs with this configuration. Wrappers in
// an output package are not recorded.
func (cfg Config) openRecord() *cache.Record {
	if cfg.Out != "" {
		return nil
	}
	return cache.Open(cfg.CacheDir, cfg.Dir, cfg.Patterns, cfg.Tags)
}
