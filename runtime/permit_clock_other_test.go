//go:build !linux

package runtime_test

import "time"

// sinceBoot returns a time that all processes of this machine share.
func sinceBoot() time.Duration { return time.Duration(time.Now().UnixNano()) }
