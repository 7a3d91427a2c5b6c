package script_test

var ledgerMutations = []scriptMutation{
	{"ledger: a version that repeats", "calendar", "version, epoch, begun = math.max(version + 1, clock)", "version, epoch, begun = clock", byModel("ledger")},
	{"ledger: an epoch for each change", "calendar", "epoch or start, begun > 0", "clock, begun > 0", byModel("ledger")},
	{"ledger: the entry is taken for a period", "calendar", "if newest >= began then", "if false then", byModel("ledger")},
	{"ledger: what is forgiven is owed", "calendar", "flags > 1 and -units or units", "units", byModel("ledger")},

	{"ledger: a reset forgets what was used", "calendar", "clock, base - used, 1, 0, 1", "clock, base, 1, 0, 1", byModel("ledger")},
	{"ledger: restored twice", "calendar", "elseif asked < 0 and whole == 0 and", "elseif asked < 0 and", byModel("ledger")},
	{"ledger: restored in another epoch", "calendar", "whole == 0 and (epoch or 1) == expected", "whole == 0", byModel("ledger")},
	{"ledger: what is restored is billed", "calendar", "base, whole, used, held = base - asked,", "base, whole, used, held = base,", byModel("ledger")},
	{"ledger: a base for the next period", "calendar", "version, epoch, base, whole, entry = start and version or 0, nil, 0, 0, ''", "version, epoch, entry = start and version or 0, nil, ''", byModel("ledger")},
	{"ledger of reservations: a version that repeats", "reserved", "version, epoch = math.max(version + 1, clock), epoch or start", "version, epoch = clock, epoch or start", byModel("ledger lent")},
	{"ledger of reservations: what lapses is no change", "reserved", "version = math.max(version, found[2 * (heads + #gone)] + 0)", "version = version", byModel("ledger lent")},
	{"ledger of reservations: past counts are no longer told", "reserved", "if ledger or head.epoch then", "if false then", byModel("ledger lent")},
	{"ledger of reservations: a debt is billed twice", "reserved", "found[1] and version or 0, nil, carried, 0", "found[1] and version or 0, nil, 0, 0", byModel("ledger lent")},
	{"ledger of reservations: what is forgiven is lost", "reserved", "math.max(base, 0), math.max(-base, 0), whole", "math.max(base, 0), 0, whole", byModel("ledger lent")},
	{"ledger of reservations: a reset forgets what was used", "reserved", "forgot, 0, 0, base - used, 1, 0", "forgot, 0, 0, base, 1, 0", byModel("ledger lent")},
	{"ledger of reservations: restored twice", "reserved", "elseif cost < 0 and whole == 0 and", "elseif cost < 0 and", byModel("ledger lent")},
	{"ledger of reservations: restored in another epoch", "reserved", "whole == 0 and (epoch or 1) == at then", "whole == 0 then", byModel("ledger lent")},
}
