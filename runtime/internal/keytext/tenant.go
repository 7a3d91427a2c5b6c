package keytext

import "math"

// MaxTenant is the longest name of a tenant in bytes. A longer one is cut to a hash.
const MaxTenant = 128

// InvalidWeight is the weight of a tenant whose own is out of bounds.
const InvalidWeight = math.MaxUint32

// besideTenant is what parts have that are like others but for a tenant.
var besideTenant = &rare{}

// SetTenant says for which tenant calls with the parts are, and at which weight, which is not 0. The tenant's
// bytes stand behind those of the parts, from the end on.
func (p *Parts) SetTenant(t *Parts, weight uint32) {
	name := t.Bytes()
	if len(name) > MaxTenant {
		name = AppendHash(nil, name)
	}
	p.weight, p.tenant = weight, 0
	if p.rare == nil {
		p.rare = besideTenant
	}
	r := *p.rare
	if r.err == nil {
		r.err = t.Err()
	}
	r.empty, r.tenant = r.empty || t.HasEmpty(), nil
	if int(p.n)+len(name) <= Inline {
		p.tenant = uint8(copy(p.inline[Inline-len(name):], name))
	} else {
		r.tenant = append([]byte(nil), name...)
	}
	if r.err != nil || r.empty != p.rare.empty || r.tenant != nil || p.rare.tenant != nil {
		p.rare = &r
	}
}

// Tenant returns the name of the tenant, as it stands in Redis, and its weight; 0: there is none.
func (p *Parts) Tenant() (name []byte, weight uint32) {
	if p.rare != nil && p.rare.tenant != nil {
		return p.rare.tenant, p.weight
	}
	return p.inline[Inline-p.tenant:], p.weight
}
