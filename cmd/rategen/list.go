package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/rategen/rategen/generator"
)

// list is rategen list: it prints the rules of packages.
func list(args []string, stdout, stderr io.Writer, dir string) int {
	flags := flag.NewFlagSet("rategen list", flag.ContinueOnError)
	flags.SetOutput(stderr)
	asJSON := flags.Bool("json", false, "print a JSON object for each rule, one a line")
	tags := flags.String("tags", "", "build `tags`, separated by commas")
	if code, ok := parse(flags, args, stdout, stderr, "rategen list [-json] [-tags list] [packages]"); !ok {
		return code
	}
	rules, err := generator.List(generator.Config{Dir: dir, Patterns: flags.Args(), Tags: *tags})
	if err != nil {
		out := printer{stdout: stdout, stderr: stderr, json: *asJSON}
		out.err(err)
		return inputError
	}
	if *asJSON {
		printRules(stdout, rules)
		return done
	}
	rows := [][]string{{"POSITION", "RULE", "LIMIT", "KEY"}}
	for _, r := range rules {
		key := cmp.Or(strings.Join(r.Key, ","), "(all callers)")
		if r.Policy && len(r.UsedBy) == 0 {
			key = "(policy, unused)"
		} else if r.Policy {
			key = "(policy of " + strings.Join(r.UsedBy, ", ") + ")"
		}
		rows = append(rows, []string{fmt.Sprintf("%s:%d", r.Pos.Filename, r.Pos.Line), r.Name, r.Limit, key})
	}
	if len(rules) == 0 {
		fmt.Fprintln(stderr, "0 directives in these packages")
		return done
	}
	printTable(stdout, widthOf(stdout), rows)
	return done
}

// printRules prints a JSON object for each rule. Durations are as Go writes
// them.
func printRules(w io.Writer, rules []generator.Rule) {
	for _, r := range rules {
		fmt.Fprintf(w, "%s\n", object(ruleMembers(r)))
	}
}

// ruleMembers returns the members of the JSON object of a rule.
func ruleMembers(r generator.Rule) []member {
	members := []member{
		{"file", r.Pos.Filename}, {"line", r.Pos.Line}, {"column", r.Pos.Column},
		{"package", r.Package},
	}
	if r.Policy {
		members = append(members, member{"policy", true}, member{"usedBy", append([]string{}, r.UsedBy...)})
	} else {
		members = append(members, member{"interface", r.Interface}, member{"methods", append([]string{}, r.Methods...)})
	}
	if r.Shared {
		members = append(members, member{"shared", true})
	}
	for _, option := range r.Options {
		members = append(members, member{option.Option, option.Value})
	}
	return members
}

// A member is a name and a value of a JSON object.
type member struct {
	name  string
	value any
}

// object writes a JSON object whose members keep their order.
func object(members []member) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			out.WriteByte(',')
		}
		enc.Encode(m.name)
		out.Truncate(out.Len() - 1) // the line break that Encode adds
		out.WriteByte(':')
		enc.Encode(m.value)
		out.Truncate(out.Len() - 1)
	}
	out.WriteByte('}')
	return out.Bytes()
}
