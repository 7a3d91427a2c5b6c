package ratehttp

import (
	"strings"

	"github.com/rategen/rategen/runtime/ratefield"
)

// maxAccept is how much of a header Accept is read, in bytes.
const maxAccept = 1024

// prefersText reports whether a client would rather read a line of text than a
// problem document, by the lines of its header Accept: RFC 9110, section 12.5.1. A
// client that accepts neither gets the document.
func prefersText(accept []string) bool {
	var document, text preference
	read := 0
	for _, line := range accept {
		if read += len(line); read > maxAccept {
			break
		}
		for _, part := range strings.Split(line, ",") {
			mediaType, params, _ := strings.Cut(part, ";")
			mediaType = strings.ToLower(strings.Trim(mediaType, " \t"))
			quality := ratefield.Quality(params)
			switch mediaType {
			case "*/*":
				document.offer(1, quality)
				text.offer(1, quality)
			case "application/*":
				document.offer(2, quality)
			case "text/*", "text/html":
				text.offer(2, quality)
			case "text/plain":
				text.offer(4, quality)
			case "application/json":
				document.offer(3, quality)
			case problemMediaType:
				document.offer(4, quality)
			}
		}
	}
	return text.quality > document.quality
}

// A preference is how much a client wants a media type, by the most specific range
// that covers it.
type preference struct {
	specific int
	quality  float64
}

func (p *preference) offer(specific int, quality float64) {
	if specific > p.specific || specific == p.specific && quality > p.quality {
		p.specific, p.quality = specific, quality
	}
}
