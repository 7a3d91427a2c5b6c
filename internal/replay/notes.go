package replay

import "fmt"

// notes says what the numbers of a result leave out, and what was wrong with the records.
func (r *Result) notes(run *run) (notes []string) {
	say := func(if_ bool, format string, args ...any) {
		if if_ {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	d, s := &r.Damage, run.survey
	*d = run.files.Damage
	say(true, "A replay cannot know the calls that refused callers would have made, nor those that they made again since they were refused.")
	say(r.Unequal > 0, "%d of %d calls are decided otherwise than recorded, by the same rules: clocks, calls before the record began and of processes that record nothing, leases, resets, holds and the earlier tries of calls that waited are not in a record. Take no smaller difference for one.", r.Unequal, r.Equal+r.Unequal)
	say(r.Undecided > 0, "%s not decided by the store, but by a failure policy, by this process alone or by its cap: not replayed.", plural(r.Undecided, "call")+" were")
	say(r.queued > 0, "%s in a queue beside other limits, and no record says when they joined it: they are not held against what was recorded, and calls behind them may be decided otherwise.", plural(r.queued, "call")+" waited")
	say(s.Share < 1, "A share of %g of the callers is recorded, each whole: multiply calls and callers by %.3g, but for rules without a key.", s.Share, 1/s.Share)
	say(s.Secrets > 1, "%d secrets name the callers: one caller counts as several where its calls were recorded with several secrets, and limits that programs share are told apart. Record with one secret.", s.Secrets)
	say(s.Guessed > 0, "The clocks of %s may be apart: only rules with a sliding-log tell by how much.", plural(int64(s.Guessed), "recording"))
	say(d.Dropped > 0, "%s dropped while recording: the numbers are too small.", plural(d.Dropped, "event")+" were")
	say(d.Missing > 0, "%s of events missing: files were removed, or not named.", plural(d.Missing, "block"))
	say(d.Corrupt > 0 || d.Skipped > 0, "%s corrupt, and %s belong to no block: left out.", plural(int64(d.Corrupt), "block"), plural(d.Skipped, "byte"))
	say(d.Truncated > 0, "%s within a block, as after a crash: up to a second of events is missing.", plural(int64(d.Truncated), "file")+" ended")
	say(d.Unknown > 0, "%s of another version of the format left out.", plural(int64(d.Unknown), "block"))
	say(d.Duplicates > 0, "%s there twice, and counted once.", plural(int64(d.Duplicates), "block")+" were")
	say(d.Steps > 0, "A clock was set back %s: callers had their limits for longer, or shorter, around that.", plural(int64(d.Steps), "time"))
	for _, sim := range append(run.simulations[:], run.check) {
		if sim.decider.Lost > 0 || sim.full {
			say(true, "The records have more callers than a replay keeps at a time, %d: some had their limits anew. Name fewer files, or record a share.", maxKeys)
			break
		}
	}
	say(r.untracked > 0, "%s of callers beyond the first %d are in the sums, and not among the callers.", plural(r.untracked, "call"), maxTracked)
	say(r.assumedHolds > 0, "%s refused when recorded hold a permit for as long as others did on average.", plural(r.assumedHolds, "call"))
	say(r.unsettled > 0, "%s refused when recorded would be admitted, and nobody knows their real cost: that before the call stands for it.", plural(r.unsettled, "call"))
	unsettled := 0
	for _, h := range run.simulations[0].held {
		for ; h != nil; h = h.next {
			if h.lapses > 0 && !h.settled {
				unsettled++
			}
		}
	}
	say(unsettled > 0, "%s never settled in the records: a replay renews what lapses as if their processes had gone on.",
		plural(int64(unsettled), "charge")+" were")
	leases := false
	for _, state := range run.files.Names.Rules {
		leases = leases || state.Rule.Lease > 0
	}
	say(leases, "Units that processes lease are decided as if each call had asked the store.")
	return notes
}
