package keytext

import (
	"bytes"
	"encoding/binary"
	"math"
)

// MaxTenant is the longest name of a tenant in bytes. A longer one is cut to a hash.
const MaxTenant = 128

// InvalidWeight is the weight of a tenant whose own is out of bounds.
const InvalidWeight = math.MaxUint32

// atTenant is where the length of a tenant's name stands inline, and then its weight.
const atTenant = Inline - 5

// besideTenant is what parts have that are like others but for a tenant.
var besideTenant = &rare{divided: true}

// SetTenant says for which tenant calls with the parts are, and at which weight, which is not 0. Parts
// that leave no room for that inline are moved.
func (p *Parts) SetTenant(t *Parts, weight uint32) {
	name := t.Bytes()
	if len(name) > MaxTenant {
		name = AppendHash(nil, name)
	}
	r := rare{divided: true, err: p.Err(), spill: p.spill(), empty: p.HasEmpty() || t.HasEmpty()}
	if r.err == nil {
		r.err = t.Err()
	}
	if r.spill == nil && p.n > atTenant {
		r.spill = p.grown(0)
	}
	p.inline[atTenant] = 0
	if r.spill == nil && int(p.n)+len(name) <= atTenant {
		p.inline[atTenant] = uint8(copy(p.inline[atTenant-len(name):], name))
	} else {
		r.tenant = bytes.Clone(name)
	}
	binary.LittleEndian.PutUint32(p.inline[atTenant+1:], weight)
	p.rare = besideTenant
	if r.err != nil || r.empty || r.spill != nil || r.tenant != nil {
		p.rare = &r
	}
}

// Tenant returns the name of the tenant, as it stands in Redis, and its weight; 0: there is none.
func (p *Parts) Tenant() (name []byte, weight uint32) {
	if p.rare == nil || !p.rare.divided {
		return nil, 0
	}
	name, weight = p.inline[p.beforeTenant():atTenant], binary.LittleEndian.Uint32(p.inline[atTenant+1:])
	if p.rare.tenant != nil {
		name = p.rare.tenant
	}
	return name, weight
}

// beforeTenant returns where inline the name of the tenant begins.
func (p *Parts) beforeTenant() int {
	if !p.rare.divided {
		return Inline
	}
	return atTenant - int(p.inline[atTenant])
}
