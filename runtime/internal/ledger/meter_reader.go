package ledger

import (
	"io"
	"sync"
)

// A MeterReader reads what is paid. A read of more bytes than can be paid is cut to those that
// can, and the next one pays for the rest.
type MeterReader struct {
	// From is what is read.
	From io.Reader
	// Pay pays for some bytes. If try is true the reader asks for fewer when it is refused.
	Pay func(bytes int, try bool) error
	// End is called once, when nothing more is to be paid.
	End func()

	unpaidBytes []byte // read and not paid
	err         error  // what comes after it
	end         sync.Once
}

// Read reads into p what is paid. Its error is the source's, or that of Pay.
func (r *MeterReader) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(r.unpaidBytes) > 0 {
		return r.pay(p[:copy(p, r.unpaidBytes)], r.unpaidBytes)
	}
	if r.err != nil {
		return 0, r.err
	}
	n, err = r.From.Read(p)
	r.err = err
	if n == 0 {
		return 0, r.finish()
	}
	return r.pay(p[:n], p[:n])
}

// pay pays for as much of got as can be, which all begins with, and keeps the rest of that.
func (r *MeterReader) pay(got, all []byte) (n int, err error) {
	for n = len(got); n > 0; n /= 2 {
		if err = r.Pay(n, n > 1); err == nil {
			break
		}
	}
	if n == 0 {
		r.unpaidBytes, r.err = nil, err
		return 0, r.finish()
	}
	all = all[n:]
	if len(r.unpaidBytes) > 0 {
		r.unpaidBytes = all
	} else {
		r.unpaidBytes = append([]byte(nil), all...)
	}
	if len(r.unpaidBytes) == 0 {
		return n, r.finish()
	}
	return n, nil
}

// finish returns what comes after the last byte, and ends the paying if that is an error.
func (r *MeterReader) finish() error {
	if r.err != nil {
		r.end.Do(r.End)
	}
	return r.err
}

// Close closes the source, if it can be closed.
func (r *MeterReader) Close() error {
	r.end.Do(r.End)
	if c, ok := r.From.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
