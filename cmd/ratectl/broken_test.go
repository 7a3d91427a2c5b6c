package main

import (
	"regexp"
	"strconv"
	"testing"
	"time"
)

// ahead returns the address of a server whose clock is ahead.
func ahead(t *testing.T, server string, by time.Duration) string {
	told := regexp.MustCompile(`\*2\r\n\$10\r\n\d{10}\r\n`) // a reply of TIME
	return between(t, server, unchanged, func(replies []byte) []byte {
		return told.ReplaceAllFunc(replies, func(reply []byte) []byte {
			seconds, _ := strconv.ParseInt(string(reply[9:19]), 10, 64)
			return append(strconv.AppendInt(reply[:9:9], seconds+int64(by.Seconds()), 10), "\r\n"...)
		})
	})
}
