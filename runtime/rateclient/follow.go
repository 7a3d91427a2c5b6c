package rateclient

import (
	"cmp"
	"context"
	"slices"
	"time"
)

const (
	// askAgain is for how long what a peer has said about its limits holds for other requests
	// without asking: another replica may have learnt something else since.
	askAgain = time.Second
	// askWait is for how long a request waits for what another one is about to learn.
	askWait = time.Second
)

// follows reports whether a max may be in force that the peer has set.
func (l *limit) follows() bool { return l.Most > 0 || l.lowered.Load() }

// bounds returns between which max of the peer the limit goes by.
func (l *limit) bounds() (least, most int64) {
	if l.Most == 0 {
		return 1, l.Rule.Max
	}
	return l.Least, l.Most
}

// names reports whether a quota of the peer may be what the limit counts: it has the same window,
// or one that is unknown and ends in the second half of such a window.
func (l *limit) names(q *Quota) bool {
	return q.Unit == l.Unit && (q.Window == l.Rule.Window || q.Window == 0 && q.Reset > l.Rule.Window/2 && q.Reset <= l.Rule.Window)
}

// follow has what a peer says about its limits set the max of the keys of a request. That of
// limits without a Most it lowers only while calls go on evenly after a hold: by then
// it has said that nothing remains although this side has counted less.
func (c *Call) follow(a *Answer, paced bool, now time.Time) {
	for i, l := range c.peer.limits {
		if !l.follows() && !paced {
			continue
		}
		s := l.keys.get(c.keyName(i), now)
		s.noteAnswer(now)
		for j := range a.Quotas {
			if q := &a.Quotas[j]; q.Limit >= 0 && q.Window > 0 && l.names(q) {
				s.follow(q.Limit, l, now)
				break
			}
		}
	}
}

// follow takes over a max: at once if it is lower, and else by a tenth for each window.
func (s *keyState) follow(peerMax int64, l *limit, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	least, most := l.bounds()
	peerMax = min(max(peerMax, least), most)
	if s.max == 0 || now.Sub(s.named) > l.keys.lifetime {
		s.max, s.raised = min(l.Rule.Max, most), now
	}
	s.named = now
	switch {
	case peerMax < s.max:
		s.max, s.raised = peerMax, now
		l.lowered.Store(true)
	case peerMax > s.max && now.Sub(s.raised) >= l.Rule.Window:
		s.max, s.raised = min(peerMax, s.max+max(1, s.max/10)), now
	}
}

// max returns the max that holds for a key, or the part of it that a request may fill.
func (l *limit) max(key string, share float64, now time.Time) int64 {
	all := l.Rule.Max
	if l.follows() {
		_, most := l.bounds()
		all = min(all, most)
		if s := l.keys.find(key, now); s != nil {
			all = cmp.Or(s.maxOfPeer(now, l.keys.lifetime), all)
		}
	}
	return max(1, int64(share*float64(all)))
}

// maxOfPeer returns the max that the peer has set, unless it names none any more, or 0.
func (s *keyState) maxOfPeer(now time.Time, lifetime time.Duration) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.named) > lifetime {
		return 0
	}
	return s.max
}

// countDecides reports whether an answer holds back calls only since nothing remains, and the limits'
// own counts do so as well. A 64th may be between them, since requests arrive in another order
// than they were charged. If the peer has counted more, and named the limit that it goes by, its
// max is taken over, so that this happens once.
func (c *Call) countDecides(ctx context.Context, a *Answer) bool {
	now, longest := time.Now(), time.Duration(0)
	for i := range a.Quotas {
		q := &a.Quotas[i]
		if !q.isSpent() || q.gradual {
			continue
		}
		longest = max(longest, q.Reset)
		j := slices.IndexFunc(c.peer.limits, func(l *limit) bool { return l.names(q) })
		if j < 0 {
			return false
		}
		l := c.peer.limits[j]
		most := l.max(c.keyName(j), 1, now)
		if left := c.remaining(ctx, j, most); left > most/marginShare {
			if q.Limit > 0 && q.Window > 0 && most-left >= q.Limit-q.Limit/marginShare {
				l.keys.get(c.keyName(j), now).follow(q.Limit, l, now)
			}
			return false
		}
	}
	return a.HoldOff <= longest
}

// remaining returns how much is left of the i-th limit: as of the charge if that says enough, and
// else as of now.
func (c *Call) remaining(ctx context.Context, i int, most int64) int64 {
	l := c.peer.limits[i]
	rule := l.rule(c.peer.spread.margin())
	if l.Share == nil && c.least == rule.Name && c.left <= most/marginShare {
		return c.left
	}
	d, err := c.transport.limiter.Peek(context.WithoutCancel(ctx), rule.Limit(&c.keys[i]).WithMax(most))
	if err != nil || d.Blocked {
		return most
	}
	return d.Remaining
}

// ask has one request of a key at a time go to a peer of which it is not known what it says, as
// long as others wait for its answer.
func (c *Call) ask(ctx context.Context) error {
	for i, l := range c.peer.limits {
		if !l.follows() {
			continue
		}
		s := l.keys.get(c.keyName(i), time.Now())
		asks, err := s.ask(ctx)
		if err != nil {
			return err
		}
		if asks {
			c.asking[i] = s
		}
	}
	return nil
}

// endAsking ends what others wait for.
func (c *Call) endAsking() {
	for i, s := range c.asking {
		if s != nil {
			c.asking[i] = nil
			s.endAsking()
		}
	}
}

// ask returns when it is known what a peer says, or true if the caller is the one to learn it,
// who ends that when there is an answer, or will be none.
func (s *keyState) ask(ctx context.Context) (asks bool, err error) {
	var wait <-chan time.Time
	for {
		before, known := s.beginAsking()
		switch {
		case known:
			return false, nil
		case before == nil:
			return true, nil
		}
		if wait == nil {
			wait = time.After(askWait)
		}
		select {
		case <-before:
		case <-wait:
			s.noteAnswer(time.Now()) // there may be none: go on with what is known
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// beginAsking reports whether it is known what a peer says. Else it returns the channel of who
// asks, or nil if that is the caller from now on.
func (s *keyState) beginAsking() (before chan struct{}, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.lastAnswer) < askAgain {
		return nil, true
	}
	if before = s.asking; before == nil {
		s.asking = make(chan struct{})
	}
	return before, false
}

func (s *keyState) endAsking() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.asking)
	s.asking = nil
}

// noteAnswer notes that it is known what the peer says.
func (s *keyState) noteAnswer(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastAnswer = now
}
