package terms

import "time"

// Shares are those of a max that a charge has taken the count of a period over: bit i stands
// for the i-th of [Percents]. A store tells each once a period and key, and again only one of
// a higher max. It keeps what it has told in the key's own state, see past.lua.
type Shares uint8

// Percents are the shares that are told.
var Percents = [...]int{80, 100}

// Passed returns which shares of the terms' max a count is over that were not told, and what
// was told then. Told is 4 times the Tells of the highest share of 80 percent that was told, or
// 5 times that of one of all.
func (t *Terms) Passed(used int64, told float64) (Shares, float64) {
	tells, shares, now := float64(t.Tells), Shares(0), told
	if told < 4*tells && t.Max-used <= t.Max/5 {
		shares, now = 1, 4*tells
	}
	if told < 5*tells && used >= t.Max {
		shares, now = shares|2, 5*tells
	}
	return shares, now
}

// A Reached is a key whose count has passed a share of a period.
type Reached struct {
	Rule        string // its name
	Key         string // without its start and its tag
	Percent     int
	Used, Limit int64
	ResetAfter  time.Duration // until the period ends
	Shadow      bool
}

// Tell tells the charge's rule which shares it has passed, by which so much is used, and how
// many microseconds are left of the period. It keeps nothing of the charge.
//
//go:noinline
func (c *Charge) Tell(shares Shares, used, left int64) {
	if c.Label == nil || c.Label.Reached == nil {
		return
	}
	for i, percent := range Percents {
		if shares&(1<<i) != 0 {
			c.Label.Reached(Reached{c.Label.Name, string(c.Label.Parts(c.Key)), percent, used, c.Max, Micros(left), c.Shadow})
		}
	}
}
