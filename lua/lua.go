// Package lua holds the scripts that decide limits inside Redis. Each file
// states in its header what it keeps under a key and what it costs.
//
// The scripts run on Redis 6.2 and later and on Valkey, standalone and in a
// cluster. They read before they write, take the time from Redis, and give Redis
// no number in scientific notation.
package lua

import (
	"embed"
	"maps"
	"strings"
)

//go:embed *.lua
var files embed.FS

// Algorithms are the names of the algorithms, as take.lua knows them.
var Algorithms = [...]string{"zset", "packed", "counter", "fixed", "bucket", "permits"}

var sources = [...]string{
	"sliding_log_zset.lua", "sliding_log_packed.lua", "sliding_counter.lua",
	"fixed_window.lua", "bucket.lua", "concurrency.lua",
}

// Bits of a set of scripts.
const (
	// Several stands for several.lua.
	Several = 1 << (len(Algorithms) + iota)
	// Settle stands for settling, alone.
	Settle
	// Renew stands for renewing, alone.
	Renew
	// Hold stands for holding, alone, and with Block.
	Hold
	// Block stands for block.lua.
	Block
	// One stands for take_one.lua, with one algorithm, and of the others with Block alone.
	One
)

// Take returns the script that takes limits; take.lua documents its keys,
// arguments and reply. Bit i of set says that it knows Algorithms[i], [Several]
// that it knows more than to take calls with one limit each, [Settle], [Renew] and [Hold]
// that it does that and nothing else, [Block] that it knows limits with a block,
// beside others, and [One] that it knows no more than to take one call: Redis sets
// every function of a script up anew for each execution, so a script should know no
// more than it needs.
func Take(set uint) string {
	p := pieces{"prelude": source("prelude.lua")}
	p.read("pieces.lua")
	if set&Several != 0 {
		p.read("several.lua")
	}
	if set&Settle != 0 {
		p["loop"], p["run"] = p["settle"], p["run to settle"]
	}
	if set&Renew != 0 {
		p["loop"] = p["renewal"]
	}
	if set&Block != 0 {
		p.read("block.lua")
	}
	if set&Hold != 0 {
		p["loop"], p["forget"] = p["holding"], p["forget to hold"]
	}
	var shared, loops, functions strings.Builder
	for i, name := range Algorithms {
		if set&(1<<i) != 0 {
			q := maps.Clone(p)
			q.read(sources[i])
			q.choose(set&Block != 0)
			if set&One != 0 {
				q["shared"] = q.expand(q["shared"])
				return q.expand(source("take_one.lua"))
			}
			if text := q.expand(q["shared"]); !strings.Contains(shared.String(), text) {
				shared.WriteString(text)
			}
			loops.WriteString(strings.ReplaceAll(q.expand(q["loops"]), "ALGORITHM", name))
			functions.WriteString(strings.ReplaceAll(q.expand(q["functions"]), "ALGORITHM", name))
		}
	}
	p["shared"], p["loops"], p["functions"] = shared.String(), loops.String(), functions.String()
	return p.expand(source("take.lua"))
}

// Pieces are texts by their names; see prelude.lua for why there are such. In a
// file of pieces a line "--- name" begins one; in any text a line
// "--- insert name" stands for one. Below the first line, lines "--- reads" and
// "--- sets" list the names that the piece shares with the text around it: those that
// it reads, and those that it gives a value. They are for readers; TestNames keeps them
// true.
type pieces map[string]string

const mark, insert, reads, sets = "--- ", "--- insert ", "--- reads ", "--- sets "

// read adds the pieces of a file, in place of those of the same names.
func (p pieces) read(file string) {
	name := ""
	for line := range strings.Lines(source(file)) {
		if strings.HasPrefix(line, reads) || strings.HasPrefix(line, sets) {
			continue
		}
		if next, ok := strings.CutPrefix(line, mark); ok && !strings.HasPrefix(line, insert) {
			name = strings.TrimSpace(next)
			p[name] = ""
		} else if name != "" {
			p[name] += line
		}
	}
}

// withBlock ends the name of a piece that takes the place of the one without, if
// there is one, in scripts that know blocks.
const withBlock = " (block)"

// choose settles which of such pieces are used.
func (p pieces) choose(block bool) {
	for name, text := range p {
		if plain, ok := strings.CutSuffix(name, withBlock); ok && block {
			p[plain] = text
		}
	}
}

// expand puts pieces where a text wants them, as far indented as the line that
// stands for them. What there is no piece for is left out.
func (p pieces) expand(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(strings.TrimLeft(line, " "), insert)
		if !ok {
			out.WriteString(line)
			continue
		}
		indent := line[:len(line)-len(insert)-len(name)]
		for inner := range strings.Lines(p.expand(p[strings.TrimSpace(name)])) {
			if inner != "\n" {
				out.WriteString(indent)
			}
			out.WriteString(inner)
		}
	}
	return out.String()
}

func source(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // embedded above
	}
	return string(text)
}
