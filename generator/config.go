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
	// to, relative to Dir. Empty means what the packages' go:generate lines say,
	// or else next to the source files.
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
	return load.Config{Dir: cfg.Dir, Patterns: cfg.Patterns, Tags: cfg.Tags, Out: cfg.Out, OutName: cfg.Package}
}

// openOuts returns the packages that wrappers are written to instead of those of
// their interfaces, by directory. It reports those that cannot be.
func openOuts(p *load.Program, report *diag.Reporter) map[string]*output.Package {
	outs := map[string]*output.Package{}
	for _, place := range p.Places() {
		if before := outs[place.Dir]; before != nil {
			if place.Name != "" && place.Name != before.Types.Name() {
				report.AtPosition(place.Pos, "-pkg %s: the wrappers of another package make %s package %s: give both one name", place.Name, report.Short(place.Dir), before.Types.Name())
			}
			continue
		}
		pkgs, _ := p.PathsTo(place.Dir)
		out, err := output.OpenPackage(place.Dir, place.Name, pkgs, report.Short)
		if err != nil {
			report.AtPosition(place.Pos, "%v", err)
			continue
		}
		outs[place.Dir] = out
	}
	return outs
}

// openRecord returns the record of runs with this configuration. One whose flags
// say where wrappers go is not recorded.
func (cfg Config) openRecord() *cache.Record {
	if cfg.Out != "" {
		return nil
	}
	return cache.Open(cfg.CacheDir, cfg.Dir, cfg.Patterns, cfg.Tags)
}
