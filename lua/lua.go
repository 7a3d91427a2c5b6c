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
	"sync"

	"github.com/rategen/rategen/internal/algorithm"
)

//go:embed *.lua
var files embed.FS

// Algorithms are the names of the algorithms, as take.lua knows them.
var Algorithms = func() (names [len(algorithm.Scripts)]string) {
	for i := range names {
		names[i] = algorithm.Scripts[i].Name
	}
	return names
}()

// Reserved is the bit of reserved.lua, the last of the algorithms, whose terms have two more
// values than others. In a script with it those of all algorithms do.
const Reserved = 1 << (len(Algorithms) - 1)

// Shares is the bit of shares.lua. In a script with it calls of all keys have two more values.
const Shares = Reserved >> 1

// Operations of a script. A set has one of them; 0 takes calls with one limit each.
const (
	// Several stands for several.lua.
	Several = (iota + 1) << len(Algorithms)
	// Settle stands for settling.
	Settle
	// Renew stands for renewing.
	Renew
	// Hold stands for holding, with Block.
	Hold
	// One stands for take_one.lua, with one algorithm.
	One
	// Operations has the bits of all these.
	Operations = 7 << len(Algorithms)
)

// More bits of a set of scripts.
const (
	// Block stands for block.lua.
	Block = 1 << (len(Algorithms) + 3 + iota)
	// Past stands for past.lua. Terms have five more values then.
	Past
	// Sets is above every set.
	Sets
)

// Take returns the script that takes limits; take.lua documents its keys,
// arguments and reply. Bit i of set says that it knows Algorithms[i], [Several]
// that it knows more than to take calls with one limit each, [Settle], [Renew] and [Hold]
// that it does that and nothing else, [One] that it knows no more than to take one call,
// and [Block] and [Past] that it knows limits with a block, those that keep counts of
// former periods or tell shares, with or without a ledger, beside others: Redis sets every function of a script up anew
// for each execution, so a script should know no more than it needs.
func Take(set uint) string {
	p := pieces{"prelude": source("prelude.lua")}
	p.read("pieces.lua")
	operation, loop := set&Operations, "loop"
	if operation == Several {
		p.read("several.lua")
	}
	if set&Block != 0 {
		p.read("block.lua")
	}
	if set&Past != 0 {
		p.read("past.lua")
		p.read("ledger.lua")
	}
	switch operation {
	case Settle:
		loop, p["run"], p["failed"] = "settle", p["run to settle"], p["failed to settle"]
	case Renew:
		loop = "renewal"
	case Hold:
		loop, p["forget"] = "holding", p["forget to hold"]
	}
	var shared, loops, functions strings.Builder
	for i, name := range Algorithms {
		if set&(1<<i) != 0 {
			q := maps.Clone(p)
			for _, file := range algorithm.Scripts[i].Files {
				q.read(file)
			}
			r := maps.Clone(q) // of loops
			r.choose(inRun, loop == "loop" && operation != One && set&Block == 0)
			for _, before := range []string{"period", "extra terms", "extra term", "lone claim", "keep claim", "limit claim", "scatter"} {
				p[before] += r.expand(r[before])
			}
			r["loop"] = r[loop]
			for _, x := range []pieces{q, r} {
				x.choose(withBlock, set&Block != 0)
				x.choose(withPast, set&Past != 0)
			}
			if operation == One {
				q["shared"] = q.expand(q["shared"])
				return sized(set, q.expand(source("take_one.lua")))
			}
			if text := q.expand(q["shared"]); !strings.Contains(shared.String(), text) {
				shared.WriteString(text)
			}
			loops.WriteString(strings.ReplaceAll(r.expand(r["loops"]), "ALGORITHM", name))
			functions.WriteString(strings.ReplaceAll(q.expand(q["functions"]), "ALGORITHM", name))
		}
	}
	p["shared"], p["loops"], p["functions"] = shared.String(), loops.String(), functions.String()
	return sized(set, p.expand(source("take.lua")))
}

// sized puts in how many values terms have, where the cost of one call is, and the end of the runs.
func sized(set uint, script string) string {
	size, cost, last := "6", "7", "#ARGV"
	if set&Past != 0 {
		size, cost = "11", "12"
	} else if set&Reserved != 0 {
		size, cost = "8", "9"
	}
	if set&Shares != 0 {
		last = "#ARGV - 2 * #KEYS"
	}
	return strings.NewReplacer("SIZE", size, "COST", cost, "LAST", last).Replace(script)
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
func (p pieces) read(file string) { maps.Copy(p, library()[file]) }

// library returns the pieces of each file, which are parsed once. Programs make a script whenever a
// server has to be told it.
var library = sync.OnceValue(func() map[string]pieces {
	all := make(map[string]pieces)
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // embedded above
	}
	for _, e := range entries {
		all[e.Name()] = parse(source(e.Name()))
	}
	return all
})

// parse returns the pieces of a text.
func parse(text string) pieces {
	p, name := pieces{}, ""
	for line := range strings.Lines(text) {
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
	return p
}

// These end the name of a piece that takes the place of the one without, if there is one,
// in scripts that know blocks, or what past.lua does, and in loops that take calls without blocks.
const withBlock, withPast, inRun = " (block)", " (past)", " (run)"

// choose settles whether the pieces whose names end so are used.
func (p pieces) choose(ending string, used bool) {
	for name, text := range p {
		if plain, ok := strings.CutSuffix(name, ending); ok && used {
			p[plain] = text
		}
	}
}

// expand puts pieces where a text wants them, as far indented as the line that
// stands for them. What there is no piece for is left out.
func (p pieces) expand(text string) string {
	var out strings.Builder
	p.write(&out, text, "")
	return out.String()
}

// write is expand for a text whose lines are indented further.
func (p pieces) write(out *strings.Builder, text, indent string) {
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(strings.TrimLeft(line, " "), insert); ok {
			p.write(out, p[strings.TrimSpace(name)], indent+line[:len(line)-len(insert)-len(name)])
			continue
		}
		if line != "\n" {
			out.WriteString(indent)
		}
		out.WriteString(line)
	}
}

func source(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // embedded above
	}
	return string(text)
}

// Processes returns the script by which a process reports what it has in force. It is
// processes.lua.
func Processes() string { return source("processes.lua") }

// Peer returns the script that keeps what a peer has said. It is peer.lua.
func Peer() string { return source("peer.lua") }
