package script_test

var ledgerMutations = []scriptMutation{
	{"ledger: a version that repeats", "calendar", "set < clock and clock or set + 1", "clock", byModel("ledger")},
	{"ledger: an epoch for each change", "calendar", "epoch or start, begun > 0", "clock, begun > 0", byModel("ledger")},
	{"ledger: the entry is taken for a period", "calendar", "if newest >= began then", "if false then", byModel("ledger")},
	{"ledger: what is forgiven is owed", "calendar", "flags > 1 and -units or units", "units", byModel("ledger")},

	{"ledger: a reset forgets what was used", "calendar", "clock, base - used, 1, 0, 1", "clock, base, 1, 0, 1", byModel("ledger")},
	{"ledger: restored twice", "calendar", "elseif asked < 0 and whole == 0 and", "elseif asked < 0 and", byModel("ledger")},
	{"ledger: restored in another epoch", "calendar", "whole == 0 and (epoch or 1) == expected", "whole == 0", byModel("ledger")},
	{"ledger: what is restored is billed", "calendar", "base, whole, used, held = base - asked,", "base, whole, used, held = base,", byModel("ledger")},
	{"ledger: a base for the next period", "calendar", "sub(kept, 1, keep * 22), nil, 0, 0, ledger", "sub(kept, 1, keep * 22), nil, base, whole, ledger", byModel("ledger")},
	{"ledger: no entry where ledger=on was added", "calendar", "passed > 0 or ledger", "passed > 0 or false", "^TestLedgerAdded$"},
	{"ledger: a kept count as of its minute", "calendar", "bytes('>I7I7I1I7', set, epoch", "bytes('>I7I7I1I7', set - set % 60000000, epoch", byModel("ledger")},
	{"ledger: its expiry is set once", "calendar", "if renews then", "if false then", "^TestLedgerAdded$"},
	{"ledger of reservations: a version that repeats", "reserved", "version, epoch = math.max(version + 1, clock), epoch or start", "version, epoch = clock, epoch or start", byModel("ledger lent")},
	{"ledger of reservations: what lapses is no change", "reserved", "version = math.max(version, found[2 * (heads + #gone)] + 0)", "version = version", byModel("ledger lent")},
	{"ledger of reservations: past counts are no longer told", "reserved", "if ledger or head.epoch then", "if false then", byModel("ledger lent")},
	{"ledger of reservations: a debt is billed twice", "reserved", "0, nil, carried, 0", "0, nil, 0, 0", byModel("ledger lent")},
	{"ledger of reservations: what is forgiven is lost", "reserved", "math.max(base, 0), math.max(-base, 0), whole", "math.max(base, 0), 0, whole", byModel("ledger lent")},
	{"ledger of reservations: a reset forgets what was used", "reserved", "forgot, 0, 0, base - used, 1, 0", "forgot, 0, 0, base, 1, 0", byModel("ledger lent")},
	{"ledger of reservations: restored twice", "reserved", "elseif cost < 0 and whole == 0 and", "elseif cost < 0 and", byModel("ledger lent")},
	{"ledger of reservations: restored in another epoch", "reserved", "whole == 0 and (epoch or 1) == at then", "whole == 0 then", byModel("ledger lent")},
}
