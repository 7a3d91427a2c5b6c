package directive

import (
	"strconv"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
)

func explainRefusal(s *Settings) string {
	if !s.Refuses() {
		return ""
	}
	return s.say(s.Row().Words.Refusal)
}

func explainWait(s *Settings) string {
	wait := get[time.Duration](s, "wait")
	if wait == 0 || !s.Refuses() {
		return ""
	}
	if s.Row().Is(algorithm.Queues) {
		return "A call waits for its turn, at which other limits count it. It is refused at once if that comes later than " + spec.DurationText(wait) + ", or than the deadline of its context."
	}
	text := "Before that it waits for room, in order of arrival in its process, for up to " + spec.DurationText(wait) + " and no longer than its context."
	if s.Row().Is(algorithm.Lends) {
		text += " Processes whose calls wait take turns."
	}
	return text
}

func explainBlock(s *Settings) string {
	if s.Block() == 0 {
		return ""
	}
	return "A caller that is refused stays refused for " + spec.DurationText(s.Block()) + " from then on. Further tries do not extend that."
}

func explainSettle(s *Settings) string {
	settle := s.Expr("settle")
	if settle == nil {
		return ""
	}
	when := "When"
	if s.Expr("refund") != nil {
		when = "Otherwise, when"
	}
	return when + " the call returns, " + settle.Text + " is what it cost: an excess of what was reserved is refunded, and a shortfall is charged, for which later calls wait."
}

func explainReserve(s *Settings) string {
	if s.Reserve() == 0 {
		return ""
	}
	if s.Expr("meter") != nil {
		return "While it runs, its process renews what is charged. If the process dies, all but what was used more than a second or so before comes back " + spec.DurationText(s.Reserve()) + " later at most."
	}
	return "While it runs, its process renews the charge. If the process dies, the charge comes back " + spec.DurationText(s.Reserve()) + " later at most."
}

func explainDebt(s *Settings) string {
	switch s.Debt() {
	case spec.DebtRefuse:
		return "What calls cost beyond the max counts until the " + s.Per() + " is over, and is then forgotten."
	case spec.DebtForgive:
		return "What calls cost beyond the max is not charged."
	case spec.DebtCarry:
		if s.Plain().Debt == spec.DebtRefuse {
			return "What calls cost beyond the max is used of the next " + s.Per() + ", up to all of its max."
		}
		return "What calls cost beyond the max counts until it has left."
	}
	return ""
}

func explainMeter(s *Settings) string {
	meter := s.Expr("meter")
	if meter == nil {
		return ""
	}
	end := "the stream ends with the error of a refused call at the first one without room"
	if !s.Refuses() {
		end = "none ends the stream"
	}
	return "Each message costs " + meter.Text + ", and " + end + ". What was charged ahead and not used is given back, after a second at most or when the stream ends."
}

func explainHold(s *Settings) string {
	hold := s.Expr("hold")
	if hold == nil {
		return ""
	}
	held := "refuse calls of the key"
	if s.Waits() {
		held = "have calls of the key wait, or refuse those that may not wait for so long,"
	}
	return "If " + hold.Text + " is above 0 when the call returns, all processes " + held + " for that time from then on, an hour or a window at most."
}

// explainState tells what Redis holds for a key. That of a log is in the row of storage.
func explainState(s *Settings) string { return s.say(s.Row().Words.State) }

func explainStorage(s *Settings) string {
	kind := map[string]string{"": "sorted set", "zset": "sorted set", "packed": "string"}[s.Storage()]
	if kind == "" {
		return ""
	}
	entries := "the max"
	if most, known := s.max(); known {
		entries = most
	}
	return "A " + kind + " with the time of every call that was admitted in the last " + spec.DurationText(s.Window()) + ", and so up to " + entries + " that count."
}

func explainLedger(s *Settings) string {
	by := map[any]string{"on": "by key", "hash": "by the SHA-256 of its key"}[s.values["ledger"]]
	if by == "" {
		return ""
	}
	return "Package rateledger keeps what is used of each " + s.Per() + " in Postgres, " + by + "."
}

// explainFail is about failures as [explainState] is about Redis.
func explainFail(s *Settings) string {
	if !s.Refuses() {
		return "If Redis gives no answer, the call goes on and is not counted."
	}
	return ofChoice("fail", "If Redis gives no answer in time, ", map[string]string{
		"":       "the limiter's policy decides. Without runtime.WithFailurePolicy the call goes on and is not counted.",
		"open":   "the call goes on and is not counted.",
		"closed": "the call is refused with an error that is runtime.ErrUnavailable.",
		"local": "this process decides alone by counts of its own. All processes together may then admit the max once for each of them, " +
			"unless runtime.WithReplicas divides it.",
	})(s)
}

// ofChoice says something of an option with few values, by these.
func ofChoice(option, before string, sentences map[string]string) func(*Settings) string {
	return func(s *Settings) string {
		if text := sentences[get[string](s, option)]; text != "" {
			return before + text
		}
		return ""
	}
}

// KeyTag returns what the Redis keys of a rule end in: rules with different states never
// share a key.
func (s *Settings) KeyTag() string {
	row := s.Row()
	tag := row.Suffix
	if row.Need&algorithm.Layers != 0 {
		tag += "-" + get[buckets](s, "buckets").String() + "-" + strconv.FormatInt((s.Window()+s.Lease()).Microseconds(), 10)
	}
	if s.Block() > 0 || s.Expr("hold") != nil {
		tag += "%block"
	}
	return tag
}
