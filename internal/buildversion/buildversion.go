// Package buildversion returns the version of rategen that a command was built from.
package buildversion

import "runtime/debug"

// Version returns the version of the module that this command was built from.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	if info.Main.Path != "github.com/rategen/rategen" {
		for _, m := range info.Deps {
			if m.Path == "github.com/rategen/rategen" {
				return m.Version
			}
		}
	}
	return info.Main.Version
}
