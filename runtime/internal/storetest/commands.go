package storetest

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rategen/rategen/lua"
)

// Commands returns the commands that the scripts call.
func Commands() (names []string) {
	all := uint(lua.Several - 1)
	scripts := lua.Take(all|lua.Several) + lua.Take(all|lua.Settle) + lua.Take(all|lua.Renew) + lua.Take(all|lua.Several|lua.Block) + lua.Take(all|lua.Settle|lua.Block)
	for _, m := range regexp.MustCompile(`call\('([A-Z]+)'`).FindAllStringSubmatch(scripts, -1) {
		names = append(names, strings.ToLower(m[1]))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
