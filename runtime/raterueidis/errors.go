package raterueidis

import (
	"errors"

	"github.com/redis/rueidis"

	"github.com/rategen/rategen/runtime/rediswire"
)

// known returns an error of rueidis as package rediswire has it.
func known(err error) error {
	if err == nil {
		return nil
	}
	if reply, is := rueidis.IsRedisErr(err); is {
		if reply.IsNil() {
			return rediswire.ErrNil
		}
		return rediswire.Reply(reply.Error())
	}
	if rueidis.IsRedisNil(err) {
		return rediswire.ErrNil
	}
	if errors.Is(err, rueidis.ErrClosing) {
		return rediswire.Closed(err)
	}
	if errors.Is(err, rueidis.ErrNoSlot) {
		return rediswire.NotSent(err)
	}
	return err
}
