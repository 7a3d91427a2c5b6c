package terms

import "github.com/rategen/rategen/runtime/internal/calendar"

// A Past is what is kept of periods of the calendar that are over.
type Past struct {
	// Begin and End are those of the present period. Begin is 0 if that is not known.
	Begin, End int64
	// Used and Entry are those of the present period, of Terms with a Ledger.
	Used  int64
	Entry Entry
	// Counts are those of periods before it in which something was charged, the last one
	// first.
	Counts []Count
}

// A Count is what was used of a period.
type Count struct {
	Begin int64 // 0 if that is not known
	End   int64 // the first instant that is not of the period
	Used  int64
	Entry Entry // of Terms with a Ledger
}

// An Entry is what a ledger knows of a count, see ledger.lua. The Epoch is 0 if nothing is counted.
type Entry struct {
	Version, Epoch, Base int64
	Whole                bool
}

// NoEpoch stands for an Epoch of 0 where counts are restored: At is 0 of those that were not.
const NoEpoch = 1

// Last returns the counts of the last n periods, the last one first. In those that nothing is
// kept of nothing was used.
func (p *Past) Last(period *calendar.Period, n int) []Count {
	all, counts := make([]Count, 0, n), p.Counts
	// begin returns when a period has begun that ends at a time, and follows what is left of
	// counts. The end of that is its begin also if the calendar says a little less: it may have
	// been that of another anchor or time zone.
	begin := func(end int64) int64 {
		begin := period.Before(end)
		if len(counts) > 0 && counts[0].End < end && counts[0].End > begin-(end-begin)/4 {
			return counts[0].End
		}
		return begin
	}
	end := p.Begin
	if end == 0 {
		end = begin(p.End)
	}
	for len(all) < n {
		c := Count{End: end}
		if len(counts) > 0 && counts[0].End >= end {
			c, counts = counts[0], counts[1:]
		}
		if c.Begin == 0 || c.Begin >= c.End {
			c.Begin = begin(c.End)
		}
		all, end = append(all, c), c.Begin
	}
	return all
}
