package differential

// support is what every package has.
const support = `
type Iface interface{ Text() string }

// A Keyed may be an Iface.
type Keyed interface {
	comparable
	Iface
}

type Ints []int

func textOf[K Keyed](k K) string {
	h.Call("textOf", any(k) != nil)
	if any(k) == nil {
		return strs[1]
	}
	return k.Text()
}

type Point struct{ X, Y int }

type rnd struct{ *rand.Rand }

func fresh() *rnd { return &rnd{rand.New(rand.NewPCG(1, 2))} }

var strs = []string{"", "a", "b"}

func (r *rnd) int() int       { return r.IntN(5) }
func (r *rnd) bool() bool     { return r.IntN(2) == 0 }
func (r *rnd) string() string { return strs[r.IntN(3)] }
func (r *rnd) ints() []int    { return []int{r.int(), r.int()}[:r.IntN(3)] }
func (r *rnd) array() *[3]int {
	if r.bool() {
		return nil
	}
	return &[3]int{1, r.int(), 3}
}
func (r *rnd) err() error {
	if r.bool() {
		return nil
	}
	return errors.New("failed")
}

func answer(s string, err error) (*T0, error) {
	h.Call("answer", s)
	return nil, fmt.Errorf("%s: %w", s, err)
}

func pause(n int) time.Duration {
	h.Call("pause", n)
	return time.Duration(n)
}

// Compare tries the methods on random inputs.
func Compare(counts *h.Counts, seed uint64, inputs int, report func(string)) {
	r := &rnd{rand.New(rand.NewPCG(seed, 0))}
	for range inputs {
		in := newInput(r)
		for i := range entries {
			e := &entries[i]
			c := h.Case{Text: e.text, When: in.with(e.When), Key: in.with(e.Key), Cost: in.with(e.Cost), Max: in.with(e.Max),
				Settle: in.with(e.Settle), Hold: in.with(e.Hold), Deny: in.refused(e.Deny), Refund: in.with(e.Refund), Lenient: in.with(e.Lenient),
				Call: func(l *runtime.Limiter) error { return in.call(limited(next{in}, l), e.call) }}
			if how := c.Compare(counts); how != "" {
				report(e.text + "\n" + how)
			}
		}
	}
}
`
