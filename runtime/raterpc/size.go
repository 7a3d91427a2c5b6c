package raterpc

import (
	"sort"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
)

// Clients take headers up to a size, often of 8 KiB, and end a call with INTERNAL whose status has
// more. The message stands there twice, in its field and in the status that has the details.
const (
	maxStatus = 7 << 10 // with the fields of the limits
	minStatus = 1 << 10 // however long these are
)

// cut bounds a refusal: details are dropped first, the least useful of them before others, and
// then what is too long of the message.
func (c *Call) cut(r *Refusal) *Refusal {
	if r == nil || r.size() <= minStatus {
		return r
	}
	limit, policy := c.Fields()
	most := max(minStatus, maxStatus-len(limit)-len(policy))
	for _, dropped := range []func(proto.Message) bool{isA[*errdetails.QuotaFailure], isA[*errdetails.ErrorInfo]} {
		for i := 0; r.size() > most && i < len(r.Details); i++ {
			if dropped(r.Details[i]) {
				r.Details = append(r.Details[:i:i], r.Details[i+1:]...)
			}
		}
	}
	const more = "…"
	if size := r.size(); size > most {
		room := most - (size - sizeOf(r.Message)) - sizeOf(more)
		end := sort.Search(min(len(r.Message), max(room, 0)), func(n int) bool { return sizeOf(r.Message[:n+1]) > room })
		for end > 0 && !utf8.RuneStart(r.Message[end]) {
			end--
		}
		r.Message = r.Message[:end] + more
	}
	return r
}

func isA[M proto.Message](m proto.Message) bool { _, is := m.(M); return is }

// size returns about how many bytes of headers the status takes.
func (r *Refusal) size() int {
	const each = 64 // the name of a detail's type
	size := sizeOf(r.Message)
	for _, d := range r.Details {
		size += (proto.Size(d) + each) * 4 / 3
	}
	return size
}

// sizeOf returns the size of a part of the message, percent-encoded and in base64.
func sizeOf(message string) (size int) {
	for i := range len(message) {
		if c := message[i]; c < ' ' || c > '~' || c == '%' {
			size += 2
		}
	}
	return size + len(message) + (len(message)*4+2)/3
}
