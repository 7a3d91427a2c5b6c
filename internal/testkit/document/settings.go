package document

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/rule"
)

// Set sets a field of a rule as a document names it, and reports whether a rule has one of that
// name.
func Set(r *rule.Rule, name, value string) (is bool, err error) {
	field := reflect.ValueOf(r).Elem().FieldByNameFunc(func(f string) bool { return strings.EqualFold(f, name) })
	if !field.IsValid() || field.Kind() == reflect.Interface {
		return false, nil
	}
	switch f := field.Addr().Interface().(type) {
	case *string:
		*f = value
		if f == &r.Message {
			*f = strings.ReplaceAll(strings.ReplaceAll(value, "_", " "), "{retry after}", "{retry_after}")
		}
	case *bool:
		*f = true
	case *time.Duration:
		*f, err = Duration(value)
	case *rule.Buckets:
		*f, err = buckets(value)
	case *rule.Period:
		r.Algorithm, r.Window = rule.FixedWindow, 0
		err = setNamed(field, value)
	case fmt.Stringer: // of a number that has a name
		err = setNamed(field, value)
	default:
		err = json.Unmarshal([]byte(value), f)
	}
	return true, err
}

// setNamed sets a field to the value of a name.
func setNamed(field reflect.Value, name string) error {
	for v := range uint64(32) {
		field.SetUint(v)
		if fmt.Sprint(field) == name {
			return nil
		}
	}
	return fmt.Errorf("no %v is named %q", field.Type(), name)
}

func buckets(value string) (rule.Buckets, error) {
	if value == "auto" {
		return rule.AdaptiveBuckets(), nil
	}
	coarse, fine, layered := strings.Cut(value, "x")
	n, err := strconv.Atoi(coarse)
	m, _ := strconv.Atoi(fine)
	if layered {
		return rule.LayeredBuckets(n, m), err
	}
	return rule.EqualBuckets(n), err
}

// Fields returns the fields that a rule has besides its name, or those of an override, as documents name them.
func Fields(of any) string {
	var words []string
	for field, value := range reflect.Indirect(reflect.ValueOf(of)).Fields() {
		if value.IsZero() || field.Name == "Name" || value.Kind() == reflect.Map {
			continue
		}
		word := strings.ToLower(field.Name)
		if kind := value.Kind(); kind != reflect.Bool && kind != reflect.Interface {
			word += "=" + strings.ReplaceAll(fmt.Sprint(reflect.Indirect(value)), " ", "_")
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// Duration is [time.ParseDuration], for which a day is 24h, as in 3d12h.
func Duration(text string) (d time.Duration, err error) {
	days, rest, is := strings.Cut(text, "d")
	if !is {
		return time.ParseDuration(text)
	}
	n, err := strconv.Atoi(days)
	if err == nil && rest != "" {
		d, err = time.ParseDuration(rest)
	}
	if n < 0 || strings.HasPrefix(days, "-") {
		d = -d
	}
	return time.Duration(n)*24*time.Hour + d, err
}
