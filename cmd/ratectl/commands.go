package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/runtime/override"
)

// A command is a struct with a [session], whose fields are set by its flags.
type command interface {
	base() *session
	about() about
	run(ctx context.Context, args []string) error
}

// About says how a command is called, what it takes, and what it needs.
type about struct {
	name  string // one or two words
	args  string // as in a line of usage
	short string
	long  string
	flags []cli.Flag // its own
	needs need
	min   int // arguments
	max   int // or -1
}

// usage returns how the command is written.
func (a about) usage() string { return strings.TrimSpace(a.name + " " + a.args) }

// A need is what a command requires.
type need uint8

const (
	prints need = 1 << iota // it has an answer
	needRedis
	needRules
	mayRules // it uses rules if there are some
	judges   // it needs valid overrides; other commands go on without

	readsRules = prints | needRedis | needRules
	judgesKeys = readsRules | judges
)

// An entry is a command of the manual, with a session alone.
type entry struct {
	session
	is    about
	takes string // the names of its flags
	does  func(s *session, ctx context.Context, args []string) error
}

func (e *entry) about() about {
	a, own := e.is, e.ownFlags()
	for name := range strings.FieldsSeq(e.takes) {
		a.flags = append(a.flags, own[name])
	}
	return a
}

func (e *entry) run(ctx context.Context, args []string) error { return e.does(&e.session, ctx, args) }

// commands returns all commands in the order of the manual.
func commands() []command {
	return []command{
		&entry{is: about{
			name: "rules", short: "list the rules, with the overrides in force", needs: judgesKeys,
			long: "Lists the rules of the listing. With -overrides it shows the override of each rule, and how many patterns of keys have one.",
		}, does: (*session).listRules},
		&entry{is: about{
			name: "top", short: "show the rules live, those that refuse most first", needs: judgesKeys,
			long: "Counts the callers in Redis that are refused, blocked or near their limits now, over all programs. It reads every key of the rules, so choose -every accordingly. With -page it shows the calls a second that the program behind a live page admits and refuses; RATECTL_PAGE_AUTHORIZATION becomes the header Authorization. " +
				"On a terminal s sorts by the next column, / filters, the arrows select a rule, enter shows its keys or rates, esc goes back, q quits. Without a terminal, or with -count, it prints plain tables.",
		}, takes: "every count near page", does: (*session).top},
		&planCommand{},
		&proposeCommand{},
		&entry{is: about{
			name: "find", args: "TEXT", short: "find a caller: rules, keys and overrides", needs: judgesKeys, min: 1, max: 1,
			long: "Finds the keys of all rules with TEXT in a part, those with TEXT as a part first: what is left of each, and how often and when it was refused in the last day, and which overrides decide for it, until when. TEXT is as the caller is called, or as ratectl keys shows a key. " +
				"Of an address it finds the networks /64, /56 and /48 too. Keys for which nothing is counted are shown if an override is for them, or they were refused. Has Redis walk over the database.",
		}, takes: "limit near max refused-secret-file", does: (*session).find},
		&entry{is: about{
			name: "refused", args: "[KEY]", short: "look back: which callers were refused, and when", needs: prints | needRedis, max: 1,
			long: "Lists the callers that all processes have refused in the time -since, the most refused first, or those with KEY in their keys: how often, and in which minutes, by the clock of Redis. A process tells each minute, so refusals may be of the minute before. Of each minute Redis keeps the 100 callers that were refused most; " +
				"the refusals of all others are told as a number. See runtime.RefusedMinute.",
		}, takes: "since limit refused-secret-file", does: (*session).lookBack},
		&entry{is: about{
			name: "keys", args: "RULE", short: "list the callers of a rule, the most refused first", needs: judgesKeys, min: 1, max: 1,
			long: "Walks over the database and shows what a call of each key would find, without charging it. A rule in shadow mode is shown as if it refused.",
		}, takes: "state limit near max", does: (*session).listKeys},
		&entry{is: about{
			name: "inspect", args: "RULE [KEY]", short: "show all that is known about one caller", needs: judgesKeys, min: 1, max: 2,
			long: "Shows what a call of cost 1 would find now, without charging it, the key in Redis and its overrides.",
		}, takes: "parts near max", does: (*session).inspect},
		&entry{is: about{
			name: "usage", args: "RULE [KEY]", short: "show what is left to one caller", needs: judgesKeys, min: 1, max: 2,
			long: "Shows the limit, how much of it is used and left, the window or period, and when it is whole again, and what was used of the last periods if the rule keeps that, without charging anything.",
		}, takes: "parts near max", does: (*session).usage},
		&entry{is: about{
			name: "reset", args: "RULE [KEY]", short: "forget the counts of one caller", needs: judgesKeys, min: 1, max: 2,
			long: "Forgets the counts of one key, and ends its block. Asks for confirmation, and is in the history, but cannot be undone. A process that has refused the caller may do so for another second, see runtime.WithDenialMemory.",
		}, takes: "parts yes n m", does: (*session).reset},
		&entry{is: about{
			name: "release", args: "RULE [KEY]", short: "end a hold that a peer has asked for", needs: judgesKeys, min: 1, max: 2,
			long: "Ends the hold of one key of a rule for calls that go out, and leaves what is counted. Asks for confirmation, since the peer may mind. Waiting calls go on within a second or two. Such rules are in the listing of a live page.",
		}, takes: "parts yes n m", does: (*session).release},
		&entry{is: about{
			name: "block", args: "RULE [KEY]", short: "refuse all calls of one caller", needs: readsRules, min: 1, max: 2,
			long: "Sets the field block in the override of the key, and keeps the others. Asks for confirmation if the rule has no key, or no process that reports follows the hash, see override.Redis.",
		}, takes: endFlags + "parts", does: editsKey(override.Edit{Block: true})},
		&entry{is: about{
			name: "unblock", args: "RULE [KEY]", short: "undo block", needs: readsRules, min: 1, max: 2,
			long: "Removes the field block only. Use reset to end a block of the rule itself.",
		}, takes: changeFlags + "parts", does: editsKey(override.Edit{Clear: []string{"block"}})},
		&entry{is: about{
			name: "allow", args: "RULE [KEY]", short: "remove the limit of one caller", needs: readsRules, min: 1, max: 2,
			long: "Sets the field allow in the override of the key, and keeps the others. A block precedes it. Asks for confirmation if the rule has no key.",
		}, takes: endFlags + "parts", does: editsKey(override.Edit{Allow: true})},
		&entry{is: about{
			name: "unallow", args: "RULE [KEY]", short: "undo allow", needs: readsRules, min: 1, max: 2,
			long: "Removes the field allow only.",
		}, takes: changeFlags + "parts", does: editsKey(override.Edit{Clear: []string{"allow"}})},
		&entry{is: about{
			name: "shadow", args: "on|off RULE [KEY]", short: "count the calls of a rule, and refuse none", needs: readsRules, min: 2, max: 3,
			long: "Sets the mode of the rule, or of one key, by an override: shadow for on, enforce for off. Keeps the other fields. Asks for confirmation before on.",
		}, takes: endFlags + "parts", does: (*session).shadow},
		&entry{is: about{
			name: "override set", args: "RULE|*", short: "change a rule while programs run", needs: readsRules, min: 1, max: 1,
			long: "Sets the given fields, and keeps the others. With -keys the override applies to a pattern: a key as ratectl keys shows it, or the beginning of keys and a *. The rule * stands for all limits, and has -enabled only. Writes nothing that a limiter would reject. " +
				"Asks for confirmation before a max of 0, mode shadow and what removes a whole limit.",
		}, takes: endFlags + "set-max window mode enabled keys", does: (*session).setOverride},
		&entry{is: about{
			name: "override ls", short: "list the overrides", needs: prints | needRedis,
			long: "Lists the hash, with expired overrides, and in how many of the processes that report it is in force. If a limiter would reject the hash, the error says why.",
		}, does: (*session).listOverrides},
		&entry{is: about{
			name: "override rm", args: "RULE|*", short: "remove an override", needs: prints | needRedis | mayRules, min: 1, max: 1,
			long: "Removes the override of a rule but not of its keys, or with -keys that of one pattern, or with -only some fields. Removes invalid overrides, too.",
		}, takes: changeFlags + "only keys", does: (*session).removeOverride},
		&entry{is: about{
			name: "history", short: "list what operators have changed, the last one first", needs: prints | needRedis,
			long: "Lists the last 500 changes of overrides, resets, releases, imports and expiries by ratectl, live pages and override.Editor: who, when, why, before and after. Changes by other programs are not recorded.",
		}, takes: "limit", does: (*session).history},
		&entry{is: about{
			name: "undo", args: "[CHANGE]", short: "undo a change of overrides", needs: prints | needRedis | mayRules, max: 1,
			long: "Restores the override from before the CHANGE, a number of history, by default the last change that is no undo and is not undone. Asks for confirmation if somebody else has made it. Refuses, and says who, if the same was changed since. An undo can be undone by its number; what was done to counts cannot.",
		}, takes: changeFlags + "yes", does: (*session).undo},
		&entry{is: about{
			name: "memory", args: "[PREFIX...]", short: "count keys and their memory", needs: prints | needRedis | mayRules, max: -1,
			long: "Counts the keys of each rule, or those that start with a PREFIX; a key counts for the longest. ENDLESS keys have no expiry; the limiter leaves none.",
		}, does: (*session).memory},
		&entry{is: about{
			name: "fix-expiry", args: "[PREFIX...]", short: "set an expiry for keys that have none", needs: prints | needRedis | mayRules, max: -1,
			long: "Keys of rules live on for as long as they can have an effect, those of a PREFIX for -expiry: name a prefix that only the limiter uses. Asks for confirmation.",
		}, takes: "expiry yes n m", does: (*session).fixExpiry},
		&entry{is: about{
			name: "export", args: "[RULE...]", short: "print the counts of rules, to keep or to move them", needs: judgesKeys, max: -1,
			long: "Prints every key of the rules, or of all, as lines of JSON: what is counted, whether a block is on, and until when. Of all rules it prints the overrides and their history too. The last line says how many there were. Charges that are made meanwhile may be missing. Walks over the database.",
		}, does: (*session).export},
		&entry{is: about{
			name: "import", args: "FILE|-", short: "put exported counts into Redis", needs: judgesKeys, min: 1, max: 1,
			long: "Puts what export has printed into this Redis, in this namespace. Each key expires when it would have. Keys that are there already stay as they are, unless -overwrite. Import before programs count in the new Redis, then restart them: what they hold of leases and refusals is of the old one. " +
				"Overrides that are there already stay as well, and so does a history. Nothing is imported if a line is no line of an export, or not of a rule that counts alike, unless -skip; the error names the lines. A rule that is called otherwise here is named by -rename. Counts that the scripts do not understand are left out and named. Asks for confirmation.",
		}, takes: "overwrite skip rename yes n m", does: (*session).importCounts},
		&entry{is: about{
			name: "doctor", short: "look for what may keep limits from working", needs: readsRules,
			long: "Checks every server's version, role, clock, latency, eviction, memory and persistence; tries the scripts of every rule, without charging; looks for overrides of no rule or that have expired, reads what processes report, asks the program whose page has the rules what it has found, and looks for keys without an expiry or of no rule. Each finding is ok, warn, bad or unknown, with a remedy. " +
				"The exit code is 1 if one is bad. Walks over the database, and needs the right +info, too.",
		}, does: (*session).doctor},
		&entry{is: about{
			name: "contexts", short: "list the contexts", needs: prints,
			long: "Lists the contexts in the file RATECTL_CONFIG, by default ratectl/config.json in $XDG_CONFIG_HOME or ~/.config.",
		}, does: (*session).contexts},
		&entry{is: about{name: "version", short: "print the version", long: "Prints the versions of the command's module and of Go."}, does: (*session).version},
		&entry{is: about{
			name: "completion", args: "bash|zsh|fish", short: "print a script for completion in a shell", min: 1, max: 1,
			long: "For bash: source <(ratectl completion bash). For zsh: the same, after compinit. For fish: ratectl completion fish | source.",
		}, does: (*session).completion},
		&entry{is: about{
			name: "help", args: "[man|markdown]", short: "list the commands, or print the manual", max: 2,
			long: "With the argument man it prints a page for man, with markdown the table in docs/ratectl.md.",
		}, does: (*session).help},
	}
}
