// Package lua holds the scripts that decide limits inside Redis. Each file
// states in its header what it keeps under a key and what it costs.
//
// The scripts run on Redis 6.2 and later and on Valkey, standalone and in a
// cluster. They read before they write, take the time from Redis, and never
// write a number in scientific notation where Redis could read it.
package lua

import (
	_ "embed"
)

var (
	//go:embed prelude.lua
	prelude string
	//go:embed sliding_log_zset.lua
	slidingLogZSET string
	//go:embed sliding_log_list.lua
	slidingLogList string
	//go:embed sliding_counter.lua
	slidingCounter string
	//go:embed layered_counter.lua
	layeredCounter string
	//go:embed fixed_window.lua
	fixedWindow string
	//go:embed bucket.lua
	bucket string
	//go:embed take.lua
	take string
)

// Take is the script that takes, peeks at and refunds limits of every
// algorithm; take.lua documents its keys, arguments and reply.
var Take = prelude + slidingLogZSET + slidingLogList + slidingCounter + layeredCounter + fixedWindow + bucket + take
