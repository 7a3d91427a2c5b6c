package main

// commands returns all commands in the order of the manual.
func commands() []*command { return table }

var table []*command

func init() { // the commands of help and completion are made from the table itself
	table = []*command{
		{
			name: "rules", short: "list the rules, with the overrides in force",
			long:  "Lists the rules of the listing. With -overrides it reads the hash, and shows what holds now: that of the rule itself, and how many patterns of keys have an override.",
			needs: needRedis | needRules | judges, run: rules,
		},
		{
			name: "top", short: "show the rules live, those that refuse most first", flags: []string{"every", "count", "near", "page"},
			long: "With -page it shows the calls a second that the program behind a live page admits and refuses. The page's own log-in, if it has one, is passed in RATECTL_PAGE_AUTHORIZATION, " +
				"which becomes the header Authorization. Without a page it counts the callers in Redis which are refused, blocked or near their limits at this moment, over all programs: Redis does not count refused calls. " +
				"That looks at every key of the rules, so choose -every accordingly. On a terminal, s sorts by the next column, / filters, the arrows select a rule, enter opens it and esc goes back, q quits: an opened rule shows its keys, or with a page its last rates. Without a terminal, or with -count, it prints plain tables.",
			needs: needRedis | needRules | judges, run: top,
		},
		{
			name: "keys", args: "RULE", short: "list the callers of a rule, the most refused first", flags: []string{"state", "limit", "near", "max"},
			long:  "Walks over the database in steps of some 200 keys, on a cluster over all masters, and asks for each key of the rule what a call would find. Nothing is charged. A rule in the shadow is shown as if it refused.",
			needs: needRedis | needRules | judges, min: 1, max: 1, run: keys,
		},
		{
			name: "inspect", args: "RULE [KEY]", short: "show all that is known about one caller", flags: []string{"parts", "near", "max"},
			long:  "Shows what a call of a cost of 1 would find now, without charging it; the key in Redis; and the overrides that hold for it.",
			needs: needRedis | needRules | judges, min: 1, max: 2, run: inspect,
		},
		{
			name: "reset", args: "RULE [KEY]", short: "give one caller its whole limit back", flags: []string{"parts", "yes", "n"},
			long:  "Forgets what is counted for one key, and ends its block. It asks first, or -yes; without a terminal and -yes it does nothing. A process that has refused the caller may do so for up to a second more, see runtime.WithDenialMemory.",
			needs: needRedis | needRules | judges, min: 1, max: 2, run: reset,
		},
		{
			name: "block", args: "RULE [KEY]", short: "refuse all calls of one caller", flags: []string{"parts", "for", "yes", "n", "m"},
			long:  "Sets the field block in the override of the key, and leaves the others: they hold again after unblock. The hash in Redis needs to be followed by the programs, see override.Redis. For a rule without a key it asks first, or -yes.",
			needs: needRedis | needRules, min: 1, max: 2, run: block,
		},
		{
			name: "unblock", args: "RULE [KEY]", short: "take back what block has set", flags: []string{"parts", "n", "m"},
			long:  "Removes the field block, and nothing else. A block by the rule itself ends with reset.",
			needs: needRedis | needRules, min: 1, max: 2, run: unblock,
		},
		{
			name: "allow", args: "RULE [KEY]", short: "take the limit away from one caller", flags: []string{"parts", "for", "yes", "n", "m"},
			long:  "Sets the field allow in the override of the key, and leaves the others. A block goes before. For a rule without a key it asks first, or -yes.",
			needs: needRedis | needRules, min: 1, max: 2, run: allow,
		},
		{
			name: "unallow", args: "RULE [KEY]", short: "take back what allow has set", flags: []string{"parts", "n", "m"},
			long:  "Removes the field allow, and nothing else.",
			needs: needRedis | needRules, min: 1, max: 2, run: unallow,
		},
		{
			name: "shadow", args: "on|off RULE [KEY]", short: "count the calls of a rule, and refuse none", flags: []string{"parts", "for", "yes", "n", "m"},
			long:  "Sets the mode of the rule, or of one key, by an override: shadow for on, enforce for off. What else the override says stays. Before on it asks, or -yes.",
			needs: needRedis | needRules, min: 2, max: 3, run: shadow,
		},
		{
			name: "override set", args: "RULE|*", short: "change a rule while programs run", flags: []string{"set", "keys", "for", "yes", "n", "m"},
			long: "Changes the fields that are given, and leaves those of an override that is there. With -keys it is for the keys of a pattern: a key as ratectl keys shows it, or the beginning of keys and a *. The rule * stands for all limits, and has -enabled only. What a limiter would reject is not written. " +
				"A field has an end of its own: with -for or -until what it said before without an end holds again then, and without them an end that it has stays. Before a max of 0, a mode of shadow and what takes a whole limit away it asks, or -yes.",
			needs: needRedis | needRules, min: 1, max: 1, run: overrideSet,
		},
		{
			name: "override ls", short: "list the overrides",
			long:  "Lists what the hash says, also what has ended and has no effect any more. If a limiter would reject the hash, the error says why.",
			needs: needRedis, run: overrideList,
		},
		{
			name: "override rm", args: "RULE|*", short: "take an override away", flags: []string{"keys", "only", "n", "m"},
			long:  "Removes the override of a rule, which leaves those of its keys, or with -keys that of one pattern; with -only some of its fields. It also removes what is broken.",
			needs: needRedis | mayRules, min: 1, max: 1, run: overrideRemove,
		},
		{
			name: "history", short: "list the changes of overrides, the last one first", flags: []string{"limit"},
			long:  "Lists who has changed which override when and why, and what it said before and after. The last 500 changes by ratectl, live pages and override.Editor are kept beside the hash; what other programs write to it is not among them.",
			needs: needRedis, run: historyList,
		},
		{
			name: "undo", args: "[CHANGE]", short: "take a change of overrides back", flags: []string{"n", "m"},
			long:  "Writes back what the override said before the CHANGE, a number that history shows: without one the last that is no undo and is not undone. If somebody has changed the same since it does nothing, and says who. An undo is a change as others are, and can be undone by its number.",
			needs: needRedis | mayRules, max: 1, run: undo,
		},
		{
			name: "memory", args: "[PREFIX...]", short: "count keys, and the memory that they take",
			long:  "Counts the keys of each rule of the listing, or those that start with a PREFIX: a key counts for the longest. Endless are those without an expiry: the limiter leaves none.",
			needs: needRedis | mayRules, max: -1, run: memory,
		},
		{
			name: "fix-expiry", args: "[PREFIX...]", short: "give keys without an expiry one", flags: []string{"expiry", "yes", "n"},
			long:  "A key without an expiry was changed by another program, or belongs to one. The keys of rules may live on for as long as they can have an effect, those of a PREFIX for -expiry: use one that only the limiter uses. It asks first, or -yes.",
			needs: needRedis | mayRules, max: -1, run: fixExpiry,
		},
		{
			name: "doctor", short: "look for what may keep limits from working",
			long: "Asks every server about its version, role, clock, latency, eviction, memory and persistence; tries the scripts of every rule, without charging anything; and looks for overrides of no rule or that have ended, for keys without an expiry, and for keys of no rule. Each finding is ok, warn, bad or unknown, with what helps. " +
				"The exit code is 1 if one is bad. It walks over the database, and needs the right +info beside the others.",
			needs: needRedis | needRules, run: doctor,
		},
		{
			name: "contexts", short: "list the contexts", run: contexts,
			long: "Lists the contexts of the file that RATECTL_CONFIG names, or else ratectl/config.json in $XDG_CONFIG_HOME or ~/.config. A context has the values of flags by their names.",
		},
		{
			name: "version", short: "print the version", text: printVersion,
			long: "Prints the version of the module that the command was built from, and that of Go.",
		},
		{
			name: "completion", args: "bash|zsh|fish", short: "print a script for completion in a shell", min: 1, max: 1, text: completion,
			long: "For bash: source <(ratectl completion bash). For zsh: the same, after compinit. For fish: ratectl completion fish | source.",
		},
		{
			name: "help", args: "[markdown]", short: "list the commands, or print the manual", max: 2, text: manual,
			long: "With the argument markdown it prints what docs/ratectl.md says of each command.",
		},
	}
}

// aboutKeys is part of the help of commands with a KEY.
const aboutKeys = "KEY is the key as it stands in Redis after the prefix, its parts joined by colons, or all of the Redis key; a rule without a key has none. With -parts the parts are arguments of their own, without escapes: an IPv6 address, for instance."
