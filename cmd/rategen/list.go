package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

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
		rows = append(rows, []string{fmt.Sprintf("%s:%d", r.Pos.Filename, r.Pos.Line), r.Name, r.Limit(), key})
	}
	if len(rules) > 0 {
		printTable(stdout, rows)
	}
	return done
}

// A ruleObject is the JSON form of a rule. Durations are as Go writes them;
// what has no value is left out.
type ruleObject struct {
	File       string   `json:"file"`
	Line       int      `json:"line"`
	Column     int      `json:"column"`
	Package    string   `json:"package"`
	Interface  string   `json:"interface"`
	Methods    []string `json:"methods"`
	Shared     bool     `json:"shared,omitempty"`
	Name       string   `json:"name"`
	Prefix     string   `json:"prefix"`
	Key        []string `json:"key"`
	Max        string   `json:"max"`
	Window     string   `json:"window"`
	Algorithm  string   `json:"algorithm"`
	Storage    string   `json:"storage,omitempty"`
	Resolution string   `json:"resolution,omitempty"`
	Buckets    string   `json:"buckets,omitempty"`
	Burst      int64    `json:"burst,omitempty"`
	Cost       string   `json:"cost"`
	When       string   `json:"when,omitempty"`
	Message    string   `json:"message,omitempty"`
	Fail       string   `json:"fail,omitempty"`
	Wait       string   `json:"wait,omitempty"`
	Mode       string   `json:"mode"`
	Adaptive   []string `json:"adaptive,omitempty"`
}

func printRules(w io.Writer, rules []generator.Rule) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, r := range rules {
		enc.Encode(ruleObject{
			File: r.Pos.Filename, Line: r.Pos.Line, Column: r.Pos.Column,
			Package: r.Package, Interface: r.Interface, Methods: append([]string{}, r.Methods...), Shared: r.Shared,
			Name: r.Name, Prefix: r.Prefix, Key: append([]string{}, r.Key...),
			Max: r.Max, Window: r.Window.String(), Algorithm: r.Algorithm, Storage: r.Storage,
			Resolution: duration(r.Resolution), Buckets: r.Buckets, Burst: r.Burst,
			Cost: r.Cost, When: r.When, Message: r.Message, Fail: r.Fail, Wait: duration(r.Wait), Mode: r.Mode, Adaptive: r.Adaptive,
		})
	}
}

func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
