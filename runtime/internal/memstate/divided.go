package memstate

import (
	"math"
	"strconv"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// A divided is a bucket that tenants share. It repeats the floating point operations of shares.lua
// one by one, as a bucket does those of bucket.lua. Its tenants are in entryExtra.
type divided bucket

// maxTenants is how many tenants a bucket has at most.
const maxTenants = 100_000

// tenants are what the tenants of a bucket have used, by the scores of shares.lua.
type tenants struct {
	base, start, window int64 // which scores count by
	scores              ranking
	blocks              ranking // by minus their end
}

// everybody is the tenant of a hold.
var everybody = []byte(terms.Everybody)

// A standing is how a tenant stands beside others when it calls.
type standing struct {
	base, start    int64
	zero, unit     float64
	used, heaviest float64 // in millionths of an event
	held           float64
	ranked         bool // the tenant is known
	top            float64
	others         bool // the top is known
}

func (d *divided) tenants() *tenants {
	if d.extra == nil {
		return nil
	}
	return d.extra.tenants
}

// standing returns how the tenant of a charge stands at the time of a view.
func (d *divided) standing(clock int64, c *terms.Charge, v *view) (k standing) {
	t, score := d.tenants(), 0.0
	k.start = clock
	if t != nil && t.window != 0 {
		k.base, k.start = t.base, t.start
		if t.window != c.Window || d.time+c.Window <= clock {
			k.base, k.start = t.base+int64(math.Ceil(float64(d.time-t.start)/float64(t.window)))+128, clock
		}
		score, k.ranked = t.scores.score(c.Tenant)
		if last := t.scores.last(); last != nil {
			k.top, k.others = last.score, true
		}
	}
	k.zero = float64(k.base) + float64(v.time-k.start)/float64(c.Window)
	k.unit, k.held = float64(max(1, c.Weight))*levelUnit, float64(c.More)*levelUnit
	if k.ranked {
		k.used = decayed(score-k.zero, k.unit)
	}
	if k.others {
		k.heaviest = decayed(k.top-k.zero, k.unit)
	}
	return k
}

func (d *divided) look(clock int64, c *terms.Charge, v *view) {
	(*bucket)(d).look(clock, c, v)
	k := d.standing(clock, c, v)
	level, most, held := v.level, float64((float64(c.Param)-float64(c.Cost))*levelUnit), k.held
	kept, weighs := min(held, most), 1.0
	behind := k.heaviest - k.used - float64(float64(c.Cost)*levelUnit)
	if k.heaviest > 0 {
		weighs = max(1, float64(2*held/k.heaviest))
	}
	if behind > 0 {
		kept = max(0, kept-float64(behind*weighs))
	}
	room := float64(float64(c.Param)*levelUnit) - level - held
	if lack := k.heaviest - k.used; lack > max(0, room) {
		room = min(room+held, float64((room+float64(lack*weighs))/(1+weighs)))
	}
	v.behind = false
	if c.Cost > 0 && level > most-kept {
		later := *c
		later.Cost += min(c.More, c.Param-c.Cost)
		(*bucket)(d).look(clock, &later, v)
		v.behind = behind > 0 && v.retry > 0
	}
	v.room = int64(math.Floor(float64(room/levelUnit) + 1e-9))
}

func (d *divided) charge(clock int64, c *terms.Charge, v *view) {
	k := d.standing(clock, c, v)
	t := (*state)(d).makeTenants()
	t.base, t.start, t.window = k.base, k.start, c.Window
	(*bucket)(d).chargeUntil(clock, c, v, max(v.time+c.Window, t.lives(c)))
	d.write(&k, k.used+float64(float64(c.Cost)*levelUnit), c)
}

func (d *divided) refund(clock int64, c *terms.Charge) {
	t := d.tenants()
	if d.dropTime == 0 || t == nil || (*state)(d).isAhead(clock, c.Window) {
		return
	}
	var v view
	b := (*bucket)(d)
	b.look(clock, &terms.Charge{Terms: c.Terms}, &v)
	k := d.standing(clock, c, &v)
	back, used, closes := b.refundable(c, &v), k.used, c.At >= k.start && k.used > 0
	if closes {
		whole := float64(float64(c.Cost) * levelUnit)
		used -= min(decayed(float64(c.At-v.time)/float64(c.Window), whole), whole)
		if used <= 2 {
			used = 0
		}
	}
	if back > 0 || closes {
		t.base, t.start, t.window = k.base, k.start, c.Window
		b.keepMark(c, &v)
		b.set(&c.Terms, remainder(v.level, back), v.time, max(v.time+c.Window, t.lives(c)))
		d.write(&k, used, c)
	}
}

// write notes what the tenant of a charge has used. A new one has others removed, of which next to
// nothing is left or the lightest.
func (d *divided) write(k *standing, used float64, c *terms.Charge) {
	t := d.extra.tenants
	if k.others && !k.ranked {
		if t.scores.count() >= maxTenants {
			t.scores.trim(math.Inf(1), 1)
		} else {
			bound, _ := strconv.ParseFloat(strconv.FormatFloat(k.top-14, 'f', 12, 64), 64)
			t.scores.trim(bound, 8)
		}
	}
	if used > 0 {
		t.scores.set(c.Tenant, rankOf(used/k.unit, k.zero))
	} else {
		t.scores.remove(c.Tenant)
	}
}

// Tenants returns up to most tenants of a key by their scores, the highest first, and as many blocked ones by
// minus the ends of their blocks, the latest first; the time and the score of one event then; and how many have a score.
func (m *Map) Tenants(clock int64, key []byte, most int) (ranks, blocks []terms.Rank, now int64, zero float64, total int64) {
	s, hash := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(hash, key, clock)
	if e == nil || e.extra == nil || e.extra.tenants == nil {
		return nil, nil, clock, 0, 0
	}
	t := e.extra.tenants
	t.scores.root.down(func(r *ranked) bool {
		ranks = append(ranks, terms.Rank{Name: r.name, Score: r.score})
		return len(ranks) < most
	})
	t.blocks.root.up(func(r *ranked) bool {
		blocks = append(blocks, terms.Rank{Name: r.name, Score: r.score})
		return len(blocks) < most
	})
	zero = float64(t.base) + float64(max(clock, e.time)-t.start)/float64(max(1, t.window))
	return ranks, blocks, clock, zero, int64(t.scores.count())
}

// lives returns until when blocks keep the key.
func (t *tenants) lives(c *terms.Charge) int64 {
	if !c.Blocks() {
		return 0
	}
	return t.lastBlock()
}

// lastBlock returns when the last block ends, or 0.
func (t *tenants) lastBlock() int64 {
	first := t.blocks.first()
	if first == nil {
		return 0
	}
	return -int64(first.score)
}

// blockOf returns when the block ends that holds for a tenant, or 0.
func (t *tenants) blockOf(tenant []byte) int64 {
	own, _ := t.blocks.score(tenant)
	all, _ := t.blocks.score(everybody)
	return -int64(min(own, all))
}

// block sets when the block of a tenant ends; at 0 there is none. Up to eight that have ended go.
func (t *tenants) block(clock int64, tenant []byte, until int64) {
	t.blocks.remove(tenant)
	if until == 0 {
		return
	}
	for range 8 {
		oldest := t.blocks.last() // of equal ones the last by name, as Redis has them
		if oldest == nil || -int64(oldest.score) >= clock {
			break
		}
		t.blocks.remove([]byte(oldest.name))
	}
	t.blocks.set(tenant, -float64(until))
}

// decayed returns what is left of scale by the exponential of a logarithm, rounded.
func decayed(log, scale float64) float64 {
	doublings := float64(log*1.4426950408889634) + 0.5
	doublings -= fraction(doublings)
	log -= float64(doublings * 0.6931471805599453)
	sum := 0.0
	for _, term := range exponential {
		sum = term + float64(log*sum)
	}
	sum = float64(float64(sum*math.Ldexp(1, int(max(doublings, -1100))))*scale) + 0.5
	return sum - fraction(sum)
}

// exponential are the terms of its series, the last one first, and odd those of the logarithm.
var (
	exponential = [...]float64{1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320, 1. / 5040, 1. / 720, 1. / 120,
		1. / 24, 1. / 6, 1. / 2, 1, 1}
	odd = [...]float64{1. / 17, 1. / 15, 1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3, 1}
)

// rankOf returns the score of what was used at a weight of 1, when that of 1 is zero.
func rankOf(used, zero float64) float64 {
	scale, doublings := math.Frexp(used)
	if scale < 0.7071067811865476 {
		scale, doublings = scale*2, doublings-1
	}
	scale = (scale - 1) / (scale + 1)
	square, sum := float64(scale*scale), 0.0
	for _, term := range odd {
		sum = term + float64(square*sum)
	}
	rank := zero + float64(float64(doublings)*0.6931471805599453) + float64(float64(2*scale)*sum)
	rank = float64(rank*1e12) + 0.5
	return (rank - fraction(rank)) / 1e12
}

// fraction returns x % 1 of Lua.
func fraction(x float64) float64 { return x - math.Floor(x) }
