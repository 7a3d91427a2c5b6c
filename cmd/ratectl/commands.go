package main

import "github.com/rategen/rategen/runtime/override"

// commands are all commands in the order of the manual.
var commands []*command

func init() { // the commands help and completion are made from the list itself
	commands = []*command{
		{
			name: "rules", short: "list the rules, with the overrides in force",
			long:  "Lists the rules of the listing. With -overrides it shows the override of each rule, and how many patterns of keys have one.",
			needs: needRedis | needRules | judges, run: rules,
		},
		{
			name: "top", short: "show the rules live, those that refuse most first", flags: []string{"every", "count", "near", "page"},
			long: "Counts the callers in Redis that are refused, blocked or near their limits now, over all programs. It reads every key of the rules, so choose -every accordingly. With -page it shows the calls a second that the program behind a live page admits and refuses; RATECTL_PAGE_AUTHORIZATION becomes the header Authorization. " +
				"On a terminal s sorts by the next column, / filters, the arrows select a rule, enter shows its keys or rates, esc goes back, q quits. Without a terminal, or with -count, it prints plain tables.",
			needs: needRedis | needRules | judges, run: top,
		},
		{
			name: "keys", args: "RULE", short: "list the callers of a rule, the most refused first", flags: []string{"state", "limit", "near", "max"},
			long:  "Walks over the database and shows what a call of each key would find, without charging it. A rule in shadow mode is shown as if it refused.",
			needs: needRedis | needRules | judges, min: 1, max: 1, run: keys,
		},
		{
			name: "inspect", args: "RULE [KEY]", short: "show all that is known about one caller", flags: []string{"parts", "near", "max"},
			long:  "Shows what a call of cost 1 would find now, without charging it, the key in Redis and its overrides.",
			needs: needRedis | needRules | judges, min: 1, max: 2, run: inspect,
		},
		{
			name: "usage", args: "RULE [KEY]", short: "show what is left to one caller", flags: []string{"parts", "near", "max"},
			long:  "Shows the limit, how much of it is used and left, the window or period, and when it is whole again, and what was used of the last periods if the rule keeps that, without charging anything.",
			needs: needRedis | needRules | judges, min: 1, max: 2, run: usage,
		},
		{
			name: "reset", args: "RULE [KEY]", short: "forget the counts of one caller", flags: []string{"parts", "yes", "n"},
			long:  "Forgets the counts of one key, and ends its block. Asks for confirmation. A process that has refused the caller may do so for another second, see runtime.WithDenialMemory.",
			needs: needRedis | needRules | judges, min: 1, max: 2, run: reset,
		},
		{
			name: "release", args: "RULE [KEY]", short: "end a hold that a peer has asked for", flags: []string{"parts", "yes", "n"},
			long:  "Ends the hold of one key of a rule for calls that go out, and leaves what is counted. Asks for confirmation, since the peer may mind. Waiting calls go on within a second or two. Such rules are in the listing of a live page.",
			needs: needRedis | needRules | judges, min: 1, max: 2, run: release,
		},
		{
			name: "block", args: "RULE [KEY]", short: "refuse all calls of one caller", flags: []string{"parts", "for", "yes", "n", "m"},
			long:  "Sets the field block in the override of the key, and keeps the others. Asks for confirmation if the rule has no key, or no process that reports follows the hash, see override.Redis.",
			needs: needRedis | needRules, min: 1, max: 2, run: editCommand(override.Edit{Block: true}),
		},
		{
			name: "unblock", args: "RULE [KEY]", short: "undo block", flags: []string{"parts", "n", "m"},
			long:  "Removes the field block only. Use reset to end a block of the rule itself.",
			needs: needRedis | needRules, min: 1, max: 2, run: editCommand(override.Edit{Clear: []string{"block"}}),
		},
		{
			name: "allow", args: "RULE [KEY]", short: "remove the limit of one caller", flags: []string{"parts", "for", "yes", "n", "m"},
			long:  "Sets the field allow in the override of the key, and keeps the others. A block precedes it. Asks for confirmation if the rule has no key.",
			needs: needRedis | needRules, min: 1, max: 2, run: editCommand(override.Edit{Allow: true}),
		},
		{
			name: "unallow", args: "RULE [KEY]", short: "undo allow", flags: []string{"parts", "n", "m"},
			long:  "Removes the field allow only.",
			needs: needRedis | needRules, min: 1, max: 2, run: editCommand(override.Edit{Clear: []string{"allow"}}),
		},
		{
			name: "shadow", args: "on|off RULE [KEY]", short: "count the calls of a rule, and refuse none", flags: []string{"parts", "for", "yes", "n", "m"},
			long:  "Sets the mode of the rule, or of one key, by an override: shadow for on, enforce for off. Keeps the other fields. Asks for confirmation before on.",
			needs: needRedis | needRules, min: 2, max: 3, run: shadow,
		},
		{
			name: "override set", args: "RULE|*", short: "change a rule while programs run", flags: []string{"set", "keys", "for", "yes", "n", "m"},
			long: "Sets the given fields, and keeps the others. With -keys the override applies to a pattern: a key as ratectl keys shows it, or the beginning of keys and a *. The rule * stands for all limits, and has -enabled only. Writes nothing that a limiter would reject. " +
				"Asks for confirmation before a max of 0, mode shadow and what removes a whole limit.",
			needs: needRedis | needRules, min: 1, max: 1, run: overrideSet,
		},
		{
			name: "override ls", short: "list the overrides",
			long:  "Lists the hash, with expired overrides, and in how many of the processes that report it is in force. If a limiter would reject the hash, the error says why.",
			needs: needRedis, run: overrideList,
		},
		{
			name: "override rm", args: "RULE|*", short: "remove an override", flags: []string{"keys", "only", "n", "m"},
			long:  "Removes the override of a rule but not of its keys, or with -keys that of one pattern, or with -only some fields. Removes invalid overrides, too.",
			needs: needRedis | mayRules, min: 1, max: 1, run: overrideRemove,
		},
		{
			name: "history", short: "list the changes of overrides, the last one first", flags: []string{"limit"},
			long:  "Lists the last 500 changes by ratectl, live pages and override.Editor: who, when, why, before and after. Changes by other programs are not recorded.",
			needs: needRedis, run: historyList,
		},
		{
			name: "undo", args: "[CHANGE]", short: "undo a change of overrides", flags: []string{"n", "m"},
			long:  "Restores the override from before the CHANGE, a number of history, by default the last change that is no undo and is not undone. Refuses, and says who, if the same was changed since. An undo can be undone by its number.",
			needs: needRedis | mayRules, max: 1, run: undo,
		},
		{
			name: "memory", args: "[PREFIX...]", short: "count keys and their memory",
			long:  "Counts the keys of each rule, or those that start with a PREFIX; a key counts for the longest. ENDLESS keys have no expiry; the limiter leaves none.",
			needs: needRedis | mayRules, max: -1, run: memory,
		},
		{
			name: "fix-expiry", args: "[PREFIX...]", short: "set an expiry for keys that have none", flags: []string{"expiry", "yes", "n"},
			long:  "Keys of rules live on for as long as they can have an effect, those of a PREFIX for -expiry: name a prefix that only the limiter uses. Asks for confirmation.",
			needs: needRedis | mayRules, max: -1, run: fixExpiry,
		},
		{
			name: "export", args: "[RULE...]", short: "print the counts of rules, to keep or to move them",
			long:  "Prints every key of the rules, or of all, as lines of JSON: what is counted, whether a block is on, and until when. The last line says how many there were. Charges that are made meanwhile may be missing. Walks over the database.",
			needs: needRedis | needRules | judges, max: -1, run: export,
		},
		{
			name: "import", args: "FILE|-", short: "put exported counts into Redis", flags: []string{"overwrite", "yes", "n"},
			long: "Puts what export has printed into this Redis, in this namespace. Each key expires when it would have. Keys that are there already stay as they are, unless -overwrite. Import before programs count in the new Redis, then restart them: what they hold of leases and refusals is of the old one. " +
				"Nothing is imported if a line is no line of an export, or not of a rule that counts alike; the error names the lines. Counts that the scripts do not understand are left out and named. Asks for confirmation.",
			needs: needRedis | needRules | judges, min: 1, max: 1, run: importCounts,
		},
		{
			name: "doctor", short: "look for what may keep limits from working",
			long: "Checks every server's version, role, clock, latency, eviction, memory and persistence; tries the scripts of every rule, without charging; looks for overrides of no rule or that have expired, reads what processes report, asks the program whose page has the rules what it has found, and looks for keys without an expiry or of no rule. Each finding is ok, warn, bad or unknown, with a remedy. " +
				"The exit code is 1 if one is bad. Walks over the database, and needs the right +info, too.",
			needs: needRedis | needRules, run: doctor,
		},
		{
			name: "contexts", short: "list the contexts", run: contexts,
			long: "Lists the contexts in the file RATECTL_CONFIG, by default ratectl/config.json in $XDG_CONFIG_HOME or ~/.config.",
		},
		{
			name: "version", short: "print the version", text: printVersion,
			long: "Prints the versions of the command's module and of Go.",
		},
		{
			name: "completion", args: "bash|zsh|fish", short: "print a script for completion in a shell", min: 1, max: 1, text: completion,
			long: "For bash: source <(ratectl completion bash). For zsh: the same, after compinit. For fish: ratectl completion fish | source.",
		},
		{
			name: "help", args: "[man|markdown]", short: "list the commands, or print the manual", max: 2, text: manual,
			long: "With the argument man it prints a page for man, with markdown the table in docs/ratectl.md.",
		},
	}
}

// aboutKeys is part of the help of commands with a KEY.
const aboutKeys = "KEY is the key as it stands in Redis after the prefix, its parts joined by colons, or all of the Redis key; a rule without a key has none. With -parts the parts are arguments of their own, without escapes: an IPv6 address, for instance."
