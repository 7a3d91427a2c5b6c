package runtime

import "errors"

// Close settles what [Limiter.SettleLater] has left, gives back what leases hold, and
// ends the renewal of permits, the polling of the override source and the calls of
// scalers. It returns when they have ended. Calls that still hold permits may go on:
// the permits lapse within their window unless they are returned before. Calls are
// still decided, with the overrides and factors as they are, but events of the store
// no longer reach the limiter. The store stays open. The error is non-nil if and only
// if something is not settled after two seconds, the override source still runs a
// second after its context has ended, or a [Scaler] after another second. A second
// Close waits for the same. A nil Limiter has nothing to end.
func (l *Limiter) Close() error {
	if l == nil {
		return nil
	}
	if l.leases != nil {
		l.leases.close(SettleTimeout)
	}
	err := l.unsettled.close(closeTimeout)
	l.permits.close()
	if s, ok := l.store.(observable); ok {
		s.detach(l.events)
	}
	err = errors.Join(err, l.follow.close(), l.scaling.close())
	l.events.detached(l)
	return err
}
