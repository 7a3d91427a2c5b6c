package shardproxy

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
)

var errProtocol = errors.New("not the protocol of Redis")

// readCommand reads a command, an array of strings, and returns its words and
// its bytes.
func readCommand(r *bufio.Reader) (words []string, raw []byte, err error) {
	line, n, err := readLine(r, '*')
	if err != nil {
		return nil, nil, err
	}
	if n < 1 {
		return nil, nil, errProtocol
	}
	raw = append(raw, line...)
	for range n {
		line, length, err := readLine(r, '$')
		if err != nil {
			return nil, nil, err
		}
		text := make([]byte, length+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, nil, err
		}
		raw = append(append(raw, line...), text...)
		words = append(words, string(text[:length]))
	}
	return words, raw, nil
}

// readLine reads a line that begins with a sign, and the number after it.
func readLine(r *bufio.Reader, sign byte) (line string, n int, err error) {
	if line, err = r.ReadString('\n'); err != nil {
		return "", 0, err
	}
	if line[0] != sign {
		return "", 0, errProtocol
	}
	n, err = strconv.Atoi(strings.TrimRight(line[1:], "\r\n"))
	return line, n, err
}

// readReply appends the bytes of a reply to raw.
func readReply(r *bufio.Reader, raw []byte) ([]byte, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	raw = append(raw, line...)
	sign := line[0]
	switch sign {
	case '$', '=', '!', '*', '~', '>', '%', '|':
	default:
		return raw, nil // the line is all of it
	}
	n, err := strconv.Atoi(strings.TrimRight(line[1:], "\r\n"))
	if err != nil || n < 0 {
		return raw, err
	}
	switch sign {
	case '$', '=', '!':
		text := make([]byte, n+2)
		_, err := io.ReadFull(r, text)
		return append(raw, text...), err
	case '%':
		n *= 2
	case '|': // attributes, which the reply itself follows
		n = 2*n + 1
	}
	for range n {
		if raw, err = readReply(r, raw); err != nil {
			return nil, err
		}
	}
	return raw, nil
}
