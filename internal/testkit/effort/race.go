//go:build race

package effort

import "time"

const raced = true

// Slack is what a busy machine may add to a bound in time. The race detector makes
// everything several times as slow, and bounds are held to more strictly without it.
const Slack = 5 * time.Second
