// Package buildversion returns the version of rategen that a program was built from.
package buildversion

import (
	"runtime/debug"
	"strings"
	"sync"
)

const module = "github.com/rategen/rategen"

// Version returns the version of the module that this command was built from.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	if !strings.HasPrefix(info.Main.Path, module) { // somebody has built it in
		if m := dependency(info); m != nil {
			return m.Version
		}
	}
	return info.Main.Version
}

// Linked returns the version of rategen that a program links, or "(devel)" if that is a checkout:
// the program is rategen's own, or has a replace.
var Linked = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if m := dependency(info); m != nil && m.Replace == nil && m.Version != "" {
			return m.Version
		}
	}
	return "(devel)"
})

// dependency returns rategen among the modules that a program requires, or nil.
func dependency(info *debug.BuildInfo) *debug.Module {
	for _, m := range info.Deps {
		if m.Path == module {
			return m
		}
	}
	return nil
}
