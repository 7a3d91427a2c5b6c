package runtime

import "errors"

// closeTimeout is how long Close waits for what is not settled yet.
const closeTimeout = 2 * SettleTimeout

// Close settles what [Limiter.SettleLater] has left, gives back what leases hold, and
// ends the renewal of permits, the polling of the override source and the calls of
// scalers. It returns when they have ended. Calls that still hold permits may go on:
// the permits lapse within their window unless they are returned before. Calls are
// still decided, with the overrides and factors as they are, but events of the store
// no longer reach the limiter. The store stays open. The error is non-nil if and only
// if something is not settled after two seconds, the override source still runs a
// second after its context has ended, or a [Scaler] after another second. A second
// Close waits for the same.
func (l *Limiter) Close() error {
	if leases := l.engine.Leases; leases != nil {
		leases.Close(SettleTimeout)
	}
	err := l.settler.Close(closeTimeout)
	l.permits.Close()
	if s, ok := l.store.(observable); ok {
		s.detach(l.events)
	}
	err = errors.Join(err, l.follow.close(), l.scaling.close())
	l.events.detached(l)
	return err
}
