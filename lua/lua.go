// Package lua holds the scripts that decide limits inside Redis. Each file
// states in its header what it keeps under a key and what it costs.
//
// The scripts run on Redis 6.2 and later and on Valkey, standalone and in a
// cluster. They read before they write, take the time from Redis, and never
// write a number in scientific notation where Redis could read it.
package lua

import (
	"embed"
	"strings"
)

//go:embed *.lua
var files embed.FS

// Algorithms are the names of the algorithms, as take.lua knows them.
var Algorithms = [...]string{"zset", "list", "counter", "layered", "fixed", "bucket"}

var sources = [...]string{
	"sliding_log_zset.lua", "sliding_log_list.lua", "sliding_counter.lua",
	"layered_counter.lua", "fixed_window.lua", "bucket.lua",
}

// Several is the bit of a set of scripts that stands for several.lua.
const Several = 1 << len(Algorithms)

// Take returns the script that takes limits; take.lua documents its keys,
// arguments and reply. Bit i of set says that it knows Algorithms[i], and
// [Several] that it knows more than to take calls with one limit each: Redis
// sets every function of a script up anew for each execution, so a script
// should know no more than it needs.
func Take(set uint) string {
	var script strings.Builder
	script.WriteString(source("prelude.lua"))
	for i, name := range sources {
		if set&(1<<i) != 0 {
			script.WriteString(source(name))
		}
	}
	script.WriteString(source("take.lua"))
	if set&Several != 0 {
		script.WriteString(source("several.lua"))
	}
	script.WriteString(source("run.lua"))
	return script.String()
}

func source(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // embedded above
	}
	return string(text)
}
