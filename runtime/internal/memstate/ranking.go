package memstate

// A ranking has tenants in the order of their scores, as a sorted set of Redis. It is a treap: its
// tenants are a search tree by score and name, and a heap by random numbers. (Seidel, Aragon, "Randomized
// search trees", Algorithmica 16, 1996.) The zero ranking is empty.
type ranking struct {
	byName map[string]*ranked
	root   *ranked
	random uint64
}

type ranked struct {
	name        string
	score       float64
	priority    uint64
	left, right *ranked
}

func (r *ranking) count() int { return len(r.byName) }

// score returns that of a tenant.
func (r *ranking) score(name []byte) (score float64, found bool) {
	t := r.byName[string(name)]
	if t == nil {
		return 0, false
	}
	return t.score, true
}

// first returns the tenant with the lowest score, or nil.
func (r *ranking) first() *ranked {
	t := r.root
	for t != nil && t.left != nil {
		t = t.left
	}
	return t
}

// last returns the tenant with the highest score, or nil.
func (r *ranking) last() *ranked {
	t := r.root
	for t != nil && t.right != nil {
		t = t.right
	}
	return t
}

// down calls each with the tenants of a tree, the highest score first, as long as that returns true.
func (r *ranked) down(each func(*ranked) bool) bool {
	return r == nil || r.right.down(each) && each(r) && r.left.down(each)
}

// up is down from the lowest score on.
func (r *ranked) up(each func(*ranked) bool) bool {
	return r == nil || r.left.up(each) && each(r) && r.right.up(each)
}

// set sets the score of a tenant.
func (r *ranking) set(name []byte, score float64) {
	t := r.byName[string(name)]
	if t != nil {
		r.root = without(r.root, t)
	} else {
		if r.byName == nil {
			r.byName = make(map[string]*ranked)
		}
		r.random = r.random*6364136223846793005 + 1442695040888963407
		t = &ranked{name: string(name), priority: r.random >> 20}
		r.byName[t.name] = t
	}
	t.score, t.left, t.right = score, nil, nil
	low, high := split(r.root, t)
	r.root = join(join(low, t), high)
}

// remove removes a tenant, if it is there.
func (r *ranking) remove(name []byte) {
	t := r.byName[string(name)]
	if t != nil {
		r.root = without(r.root, t)
		delete(r.byName, t.name)
	}
}

// trim removes up to n of the lowest tenants, whose scores are at most so high.
func (r *ranking) trim(most float64, n int) {
	for t := r.first(); n > 0 && t != nil && t.score <= most; n-- {
		r.remove([]byte(t.name))
		t = r.first()
	}
}

// before reports whether a tenant stands before another one.
func (r *ranked) before(o *ranked) bool {
	return r.score < o.score || r.score == o.score && r.name < o.name
}

// split divides a tree into those before a tenant and the others.
func split(root, at *ranked) (low, high *ranked) {
	if root == nil {
		return nil, nil
	}
	if root.before(at) {
		root.right, high = split(root.right, at)
		return root, high
	}
	low, root.left = split(root.left, at)
	return low, root
}

// join joins trees of which all of low stand before those of high.
func join(low, high *ranked) *ranked {
	if low == nil {
		return high
	}
	if high == nil {
		return low
	}
	if low.priority > high.priority {
		low.right = join(low.right, high)
		return low
	}
	high.left = join(low, high.left)
	return high
}

// without returns a tree without a tenant of it.
func without(root, t *ranked) *ranked {
	if root == t {
		return join(root.left, root.right)
	}
	if t.before(root) {
		root.left = without(root.left, t)
	} else {
		root.right = without(root.right, t)
	}
	return root
}
