package runtime

import (
	"context"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Store keeps the counts of limits and decides calls. [RedisStore] shares
// them between processes, [MemoryStore] keeps them in this one.
//
// Only this module makes stores: what a store is asked, and in which terms, may change
// with every release. A type that embeds one of them is a Store, too.
type Store interface {
	Take(ctx context.Context, calls []terms.Call) error
	Peek(ctx context.Context, calls []terms.Call) error
	Settle(ctx context.Context, charges []terms.Charge) error
	Renew(ctx context.Context, calls []terms.Call) error
	Hold(ctx context.Context, charges []terms.Charge) error
	Reset(ctx context.Context, charges []terms.Charge) error
}

// A leaser is a store whose limits a process may lease, because other processes
// share them.
type leaser interface{ leases() }
