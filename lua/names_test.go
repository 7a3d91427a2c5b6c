package lua

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the names that pieces share")

// TestNames holds what each piece says that it reads and sets against its text. The
// names in pieces that it inserts are theirs. With -update it writes what is so.
func TestNames(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.lua")
	if err != nil || len(files) < len(Algorithms) {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := withNames(string(text))
		if *update && want != string(text) {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if want != string(text) {
			got, wanted := strings.Split(string(text), "\n"), strings.Split(want, "\n")
			i := 0
			for i < len(got) && got[i] == wanted[i] {
				i++
			}
			t.Errorf("%s:%d: %q, want %q: run go test ./lua -update", file, i+1, got[i], wanted[i])
		}
	}
}

// TestNamesOf holds the reading of names against texts whose names are known.
func TestNamesOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, reads, sets string }{
		{"a = b", "b", "a"},
		{"a, b.c, d[e] = f", "b d e f", "a"},
		{"local a = b\na = c", "b c", "a"},
		{"local a = a", "a", "a"},
		{"if a then\n  local b = c\n  b = d\n  e = b\nend\nf(b)", "a b c d f", "e"},
		{"elseif a == 'x y' then\n  -- no name\n  b = 1\nelse\n  c = b\nend", "a b", "b c"},
		{"for i = a, b do\n  c = i\nend\nd = i", "a b i", "c d"},
		{"for _, v in ipairs(a) do\n  v = b\nend", "a b", ""},
		{"local function f(a, b)\n  return a + b + c\nend\nlocal x = f(y)", "c y", "f x"},
		{"f = function(form, ...)\n  local a = form\n  return a, ...\nend\ng = b", "b", "f g"},
		{"repeat\n  local a = 1\nuntil a > b", "b", ""},
		{"x = math.floor(redis.call('GET', KEYS[1])) -- y", "", "x"},
		{"x = x + 1", "x", "x"},
		{"x = 1\ny = x", "", "x y"},
	} {
		reads, sets := namesOf(c.text)
		if got := strings.Join(reads, " "); got != c.reads {
			t.Errorf("%q reads %q, want %q", c.text, got, c.reads)
		}
		if got := strings.Join(sets, " "); got != c.sets {
			t.Errorf("%q sets %q, want %q", c.text, got, c.sets)
		}
	}
}

// withNames returns a file of pieces in which each says what it reads and sets.
func withNames(file string) string {
	var out, piece strings.Builder
	head := ""
	end := func() {
		if head != "" {
			reading, setting := namesOf(piece.String())
			out.WriteString(head + listed(reads, reading) + listed(sets, setting))
		}
		out.WriteString(piece.String())
		piece.Reset()
	}
	for line := range strings.Lines(file) {
		switch {
		case strings.HasPrefix(line, reads), strings.HasPrefix(line, sets):
		case strings.HasPrefix(line, mark) && !strings.HasPrefix(line, insert):
			end()
			head = line
		default:
			piece.WriteString(line)
		}
	}
	end()
	return out.String()
}

// listed returns lines that list names.
func listed(start string, names []string) string {
	var out strings.Builder
	for line := range slices.Chunk(names, 12) {
		out.WriteString(start + strings.Join(line, " ") + "\n")
	}
	return out.String()
}

var (
	token = regexp.MustCompile(`--[^\n]*|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|\d[\w.]*|\.\.\.?|[=<>~]=|\n|\S`)
	word  = regexp.MustCompile(`^[A-Za-z_]\w*$`)
	// own are the words of Lua and of Redis. ALGORITHM, SIZE, COST and LAST stand for what lua.go puts in.
	own = strings.Fields("and break do else elseif end false for function if in local nil not or repeat return then true until while " +
		"KEYS ARGV redis math string unpack type ipairs pairs error rawget select pcall tonumber tostring table _G ALGORITHM SIZE COST LAST")
)

// namesOf returns the names that a text of Lua may read before it has set them itself,
// and those that it sets for others: that are not local to a block of it. What one branch
// sets another one, and what follows, may read. It is no parser, and good enough for how
// the scripts are written: a statement begins a line or a block.
func namesOf(text string) (reads, sets []string) {
	tokens := slices.DeleteFunc(token.FindAllString(text+"\n", -1), func(s string) bool { return strings.HasPrefix(s, "--") })
	at := func(i int) string {
		if i < 0 || i >= len(tokens) {
			return "\n"
		}
		return tokens[i]
	}
	isName := func(s string) bool { return word.MatchString(s) && !slices.Contains(own, s) }
	read, set := map[string]bool{}, map[string]bool{}
	blocks := []map[string]bool{{}}
	declare := func(names ...string) {
		for _, name := range names {
			blocks[len(blocks)-1][name] = true
			if len(blocks) == 1 && isName(name) {
				set[name] = true
			}
		}
	}
	local := func(name string) bool {
		return slices.ContainsFunc(blocks, func(b map[string]bool) bool { return b[name] })
	}
	var waiting []string // to be declared, or set, when the line has ended
	var assigned []string
	var params []string // of a block that is about to begin
	nested := 0         // parentheses
	// names returns the names from a token on that commas divide, and what follows.
	names := func(i int) (all []string, next int) {
		for word.MatchString(at(i)) {
			all = append(all, at(i))
			if at(i+1) != "," {
				return all, i + 1
			}
			i += 2
		}
		return all, i
	}
	open := func() {
		blocks = append(blocks, map[string]bool{})
		declare(params...)
		params = nil
	}
	closed := func() {
		if len(blocks) > 1 {
			blocks = blocks[:len(blocks)-1]
		}
	}
	for i := 0; i < len(tokens); i++ {
		starts := slices.Contains([]string{"\n", "then", "do", "else", "repeat"}, at(i-1))
		s := tokens[i]
		switch {
		case s == "\n" && nested == 0:
			declare(waiting...)
			for _, name := range assigned {
				blocks[len(blocks)-1][name] = true
				if isName(name) {
					set[name] = true
				}
			}
			waiting, assigned = nil, nil
		case s == "(" || s == "{":
			nested++
		case s == ")" || s == "}":
			nested--
		case s == "local" && at(i+1) == "function":
			declare(at(i + 2))
			i++
			fallthrough
		case s == "function":
			if at(i+1) != "(" {
				i++
			}
			for params, i = names(i + 2); at(i) != ")"; i++ { // ... is no name
			}
			open()
		case s == "local":
			waiting, i = names(i + 1)
			i--
		case s == "for":
			params, i = names(i + 1)
			i--
		case s == "do", s == "repeat", s == "if":
			open()
		case s == "until":
			// What the block declares can be read in its condition.
			j := i + 1
			for ; at(j) != "\n"; j++ {
				if isName(at(j)) && at(j-1) != "." && !local(at(j)) {
					read[at(j)] = true
				}
			}
			closed()
			i = j - 1
		case s == "end":
			closed()
		case s == "else", s == "elseif":
			blocks[len(blocks)-1] = map[string]bool{}
		case !isName(s) || at(i-1) == "." || at(i-1) == ":":
		case starts && assigns(at, i):
			j := i
			for ; at(j) != "="; j++ {
				name := at(j)
				simple := (at(j-1) == "," || j == i) && (at(j+1) == "," || at(j+1) == "=")
				switch {
				case !isName(name) || at(j-1) == "." || local(name):
				case simple:
					assigned = append(assigned, name)
				default:
					read[name] = true
				}
			}
			i = j
		case !local(s):
			read[s] = true
		}
	}
	return slices.Sorted(maps.Keys(read)), slices.Sorted(maps.Keys(set))
}

// assigns reports whether the statement that begins with a token is an assignment.
func assigns(at func(int) string, i int) bool {
	for ; at(i) != "\n"; i++ {
		if at(i) == "=" {
			return true
		}
		if slices.Contains(own, at(i)) || at(i) == "(" {
			return false
		}
	}
	return false
}
