package main

import (
	"context"
	"strings"

	"github.com/rategen/rategen/runtime/override"
)

// A command is what ratectl does for a name.
type command struct {
	name  string // one or two words
	args  string // as in a line of usage
	flags string // its own, by their rows in [session.options]
	needs need
	min   int // arguments
	max   int // or -1
	run   func(s *session, ctx context.Context, args []string) error
	short string
	long  string
}

func (c command) usage() string { return strings.TrimSpace(c.name + " " + c.args) }

// A need is what a command requires.
type need uint16

const (
	prints need = 1 << iota // it has an answer
	needRedis
	needRules
	mayRules // it uses rules if there are some
	mayRedis // it opens Redis by itself
	judges   // it needs valid overrides; other commands go on without
	doubts   // it judges callers, which says nothing while Redis refuses writes
	misses   // it lists what an eviction may have taken
	replays  // records: which rules are to be other ones the command line says, and no environment

	readsRules = prints | needRedis | needRules
	judgesKeys = readsRules | judges
	judgesAll  = judgesKeys | doubts
)

// Flags of several commands: of all that change something, of those that change an override, and of those whose change
// may end.
const (
	tries    = " n m "
	asks     = tries + " yes "
	changes  = tries + " wait "
	ends     = changes + " yes for until "
	replaces = " changed plan:max plan:window plan:burst algorithm plan:mode "
)

// commands returns all commands in the order of the manual.
func commands() []command {
	return []command{
		{name: "rules", needs: judgesKeys, run: (*session).listRules, short: "list the rules, with the overrides in force",
			long: "Lists the rules of the listing. With -overrides it shows the override of each rule, and how many patterns of keys have one."},
		{name: "processes", needs: prints | needRedis | misses, run: (*session).listProcesses, short: "list the processes that report, and what each has in force",
			long: "Lists the limiters that report to this Redis in the namespace: their machine and the version of the program, whether they live, how far their clock is behind that of Redis, which version of the overrides they have, how many of their rules were called, and how many findings they have, see ratectl doctor. " +
				"A process gives a sign of life every 5 seconds, and is gone from the list four minutes after its last report."},
		{name: "top", flags: "every count by near page", needs: judgesKeys, run: (*session).top, short: "show the rules live, those that refuse most first",
			long: "Counts the callers in Redis that are refused, blocked or near their limits now, over all programs. It reads every key of the rules, so choose -every accordingly. With -page it shows the calls a second that the program behind a live page admits and refuses; RATECTL_PAGE_AUTHORIZATION becomes the header Authorization. With -by calls it shows which keys Redis is asked about most, by what processes have told in the last five seconds, and what helps. " +
				"On a terminal s sorts by the next column, / filters, the arrows select a rule, enter shows its keys or rates, esc goes back, q quits. Without a terminal, or with -count, it prints plain tables."},
		{name: "plan", args: "RECORD...", flags: replaces + "html max-newly-refused", needs: prints | mayRules | replays, min: 1, max: -1, run: (*session).plan, short: "replay records under changed rules, and list the callers refused",
			long: "Reads what package raterecord has recorded, files or directories of them, and decides each call by the rules in force then, and by changed ones: those of a listing of changed source with -rules, then of a file of overrides with -changed, then of the other flags. It takes 2 GiB of memory at most. With -max-newly-refused the exit code is 1 if more calls are refused that went on before."},
		{name: "propose", args: "RULE [RECORD...]", flags: replaces + "refused-secret-file compare", needs: prints | mayRules | mayRedis | replays, min: 1, max: -1, run: (*session).propose, short: "find the max that would have refused none, 0.1% or 1%",
			long: "Replays records with one max after the other, and finds the lowest ones that would have refused none, at most 0.1% and at most 1% of the calls, and of the callers. The other flags of plan say what else is to be different, the algorithm for instance. The column AT MOST says of how many of all callers that holds, by 95%. It names the callers that need most, and estimates what Redis would hold if all were there at a time. " +
				"Without a RECORD it asks Redis what each caller of a sliding-log or sliding-counter has used in the last window, and how often it was refused: a first answer, and a partial one."},
		{name: "find", args: "TEXT", flags: "limit near max refused-secret-file", needs: judgesAll, min: 1, max: 1, run: (*session).find, short: "find a caller: rules, keys and overrides",
			long: "Finds the keys of all rules with TEXT in a part, those with TEXT as a part first, and of these those that are refused: what is left of each, and how often and when it was refused in the last day, and which overrides decide for it, until when. TEXT is as the caller is called, or as ratectl keys shows a key. " +
				"Of an address it finds the networks /64, /56 and /48 too. Keys for which nothing is counted are shown if an override is for them, or they were refused. Has Redis walk over the database."},
		{name: "refused", args: "[KEY]", flags: "since refused:until limit refused-secret-file", needs: prints | needRedis, max: 1, run: (*session).listRefused, short: "look back: which callers were refused, and when",
			long: "Lists the callers that all processes have refused in the time -since, the most refused first, or those with KEY in their keys: how often, and in which minutes, by the clock of Redis. A process tells each minute, so refusals may be of the minute before. Of each minute Redis keeps the 100 callers that were refused most; " +
				"the refusals of all others are told as a number. Of limits in shadow mode it lists whom they would have refused. The bars are of each minute, or hour of more than two."},
		{name: "keys", args: "RULE", flags: "state limit near max", needs: judgesAll, min: 1, max: 1, run: (*session).listKeys, short: "list the callers of a rule, the most refused first",
			long: "Walks over the database and shows what a call of each key would find, without charging it, and the shares that divide a key, those first that have used most of late. A rule in shadow mode is shown as if it enforced its limit."},
		{name: "inspect", args: "RULE [KEY]", flags: "parts near max", needs: judgesAll, min: 1, max: 2, run: (*session).inspect, short: "show all that is known about one caller",
			long: "Shows what a call of cost 1 would find now, without charging it, the key in Redis and its overrides."},
		{name: "usage", args: "RULE [KEY]", flags: "parts near max", needs: judgesAll, min: 1, max: 2, run: (*session).usage, short: "show what is left to one caller",
			long: "Shows the limit, how much of it is used and left, the window or period, and when it is whole again, and what was used of the last periods if the rule keeps that, without charging anything."},
		{name: "reset", args: "RULE [KEY]", flags: asks + "parts", needs: judgesKeys, min: 1, max: 2, run: (*session).reset, short: "forget the counts of one caller",
			long: "Forgets the counts of one key, and ends its block. Asks for confirmation, and is in the history, but cannot be undone. A process that has refused the caller may do so for another second, see runtime.WithRefusalMemory."},
		{name: "release", args: "RULE [KEY]", flags: asks + "parts", needs: judgesKeys, min: 1, max: 2, run: (*session).release, short: "end a hold that a peer has asked for",
			long: "Ends the hold of one key of a rule for calls that go out, and leaves what is counted. Asks for confirmation, since the peer may mind. Waiting calls go on within a second or two. Such rules are in the listing of a live page."},
		{name: "block", args: "RULE [KEY]", flags: ends + "parts", needs: readsRules, min: 1, max: 2, run: editsKey(override.Edit{Block: true}), short: "refuse all calls of one caller",
			long: "Sets the field block in the override of the key, and keeps the others. Asks for confirmation if the rule has no key, or no process that reports follows the hash, see override.Redis."},
		{name: "unblock", args: "RULE [KEY]", flags: changes + "parts", needs: readsRules, min: 1, max: 2, run: editsKey(override.Edit{Clear: []string{"block"}}), short: "undo block",
			long: "Removes the field block only. Use reset to end a block of the rule itself."},
		{name: "allow", args: "RULE [KEY]", flags: ends + "parts", needs: readsRules, min: 1, max: 2, run: editsKey(override.Edit{Allow: true}), short: "remove the limit of one caller",
			long: "Sets the field allow in the override of the key, and keeps the others. A block precedes it. Asks for confirmation if the rule has no key."},
		{name: "unallow", args: "RULE [KEY]", flags: changes + "parts", needs: readsRules, min: 1, max: 2, run: editsKey(override.Edit{Clear: []string{"allow"}}), short: "undo allow",
			long: "Removes the field allow only."},
		{name: "shadow", args: "on|off RULE [KEY]", flags: ends + "parts", needs: readsRules, min: 2, max: 3, run: (*session).shadow, short: "count the calls of a rule, and refuse none",
			long: "Sets the mode of the rule, or of one key, by an override: shadow for on, enforce for off. Keeps the other fields. Asks for confirmation before on."},
		{name: "override set", args: "RULE|*", flags: ends + "keys share set:max burst weight scale window mode enabled", needs: readsRules, min: 1, max: 1, run: (*session).setOverride, short: "change a rule while programs run",
			long: "Sets the given fields, and keeps the others. With -keys the override applies to a pattern: a key as ratectl keys shows it, or the beginning of keys and a *; with -share to the -weight of shares. With -scale the max is a share of the present one. A RULE that ends with * names all rules that start so, and their change is one entry of the history; * with -enabled alone switches all limits. Writes nothing that a limiter would reject. " +
				"Asks for confirmation before a max of 0, mode shadow and what removes a whole limit."},
		{name: "override ls", needs: prints | needRedis | misses, run: (*session).listOverrides, short: "list the overrides",
			long: "Lists the hash, with expired overrides, and in how many of the processes that report it is in force. If a limiter would reject the hash, the error says why."},
		{name: "override rm", args: "RULE|*", flags: changes + "keys share yes only", needs: prints | needRedis | mayRules, min: 1, max: 1, run: (*session).removeOverride, short: "remove an override",
			long: "Removes the override of a rule but not of its keys and shares, or with -keys or -share that of one pattern, or with -only some fields. Removes invalid overrides, too."},
		{name: "history", flags: "limit history:since refused:until who rule key", needs: prints | needRedis | misses, run: (*session).listHistory, short: "list what operators have changed, the last one first",
			long: "Lists the changes of overrides, resets, releases, imports and expiries by ratectl, live pages and override.Editor of the last 30 days, and 4 MiB of them at most: who, when, why, before and after. A change of several overrides is one. Changes by other programs are not recorded."},
		{name: "undo", args: "[CHANGE]", flags: changes + "yes", needs: prints | needRedis | mayRules, max: 1, run: (*session).undo, short: "undo a change of overrides",
			long: "Restores the override from before the CHANGE, a number of history, by default the last change that is no undo and is not undone. Asks for confirmation if somebody else has made it. Refuses, and says who, if the same was changed since. An undo can be undone by its number; what was done to counts cannot."},
		{name: "memory", args: "[PREFIX...]", needs: prints | needRedis | mayRules, max: -1, run: (*session).memory, short: "count keys and their memory",
			long: "Counts the keys of each rule, or those that start with a PREFIX; a key counts for the longest. ENDLESS keys have no expiry; the limiter leaves none."},
		{name: "fix-expiry", args: "[PREFIX...]", flags: asks + "expiry", needs: prints | needRedis | mayRules, max: -1, run: (*session).fixExpiry, short: "set an expiry for keys that have none",
			long: "Keys of rules live on for as long as they can have an effect, those of a PREFIX for -expiry: name a prefix that only the limiter uses. Asks for confirmation."},
		{name: "export", args: "[RULE...]", needs: judgesKeys, max: -1, run: (*session).export, short: "print the counts of rules, to keep or to move them",
			long: "Prints every key of the rules, or of all, as lines of JSON: what is counted, whether a block is on, and until when. Of all rules it prints the overrides and their history too. The last line says how many there were. Charges that are made meanwhile may be missing. Walks over the database."},
		{name: "import", args: "FILE|-", flags: asks + "overwrite skip rename", needs: judgesKeys, min: 1, max: 1, run: (*session).importCounts, short: "put exported counts into Redis",
			long: "Puts what export has printed into this Redis, in this namespace. Each key expires when it would have. Keys that are there already stay as they are, unless -overwrite. Import before programs count in the new Redis, then restart them: what they hold of leases and refusals is of the old one. " +
				"Overrides that are there already stay as well, and so does a history. Nothing is imported if a line is no line of an export, or not of a rule that counts alike, unless -skip; the error names the lines. A rule that is called otherwise here is named by -rename. Counts that the scripts do not understand are left out and named. Asks for confirmation."},
		{name: "ledger ls", flags: "postgres", needs: prints | mayRedis, run: (*session).listLedger, short: "list what the ledger has of the present periods",
			long: "Lists the rules of the namespace whose usage is in Postgres: how many keys, how much, and how long ago something was written. Processes that are behind say so by ledger_behind, see ratectl doctor."},
		{name: "ledger restore", flags: asks + "postgres", needs: readsRules, run: (*session).restoreLedger, short: "have Redis count again what it has lost",
			long: "Has the limits of rules with a ledger count what Postgres has of the present periods and Redis has lost. A count is restored once, so the command may be repeated, and processes may go on meanwhile. Rules with ledger=hash are left out, and it is an error if the processes that report would not read the keys. " +
				"What was charged within some 5 seconds before Redis lost it is in neither. Asks for confirmation."},
		{name: "doctor", needs: readsRules, run: (*session).doctor, short: "look for what may keep limits from working",
			long: "Checks every server's version, role, clock, latency, eviction, memory and persistence; writes a key for a millisecond; tries the scripts of every rule, without charging; looks for overrides of no rule or that have expired, reads what processes report, asks the program whose page has the rules what it has found, and looks for keys without an expiry or of no rule. Each finding is ok, warn, bad or unknown, with a remedy. " +
				"The exit code is 1 if one is bad. Walks over the database, and needs the right +info, too."},
		{name: "contexts", needs: prints, run: (*session).listContexts, short: "list the contexts",
			long: "Lists the contexts in the file RATECTL_CONFIG, by default ratectl/config.json in $XDG_CONFIG_HOME or ~/.config."},
		{name: "version", run: (*session).version, short: "print the version", long: "Prints the versions of the command's module and of Go."},
		{name: "completion", args: "bash|zsh|fish", min: 1, max: 1, run: (*session).completion, short: "print a script for completion in a shell",
			long: "For bash: source <(ratectl completion bash). For zsh: the same, after compinit. For fish: ratectl completion fish | source."},
		{name: "help", args: "[man|markdown]", max: 2, run: (*session).help, short: "list the commands, or print the manual",
			long: "With the argument man it prints a page for man, with markdown the table in docs/ratectl.md."},
	}
}
