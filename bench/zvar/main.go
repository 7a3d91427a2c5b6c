package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/limiters"
	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/runtime"
)

func q(v []float64, p float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[int(p*float64(len(v)-1))]
}

func main() {
	ns := flag.String("n", "2,3,4,6,8,12,16", "")
	rounds := flag.Int("rounds", 40, "")
	d := flag.Duration("d", 12*time.Millisecond, "")
	lim := flag.String("l", "rategen fixed-window", "")
	vars := flag.String("v", "", "RG_CROWD=2,RG_BASE=1;...")
	flag.Parse()
	s, err := server.StartTCP(context.Background())
	if err != nil {
		panic(err)
	}
	defer s.Stop()
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = "user" + strconv.Itoa(100000+i)
	}
	var takes []load.Take
	var names []string
	mk := func(name string) load.Take {
		client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: s.Addr, PoolSize: 64}))
		over := limiters.Server{Client: client, Addr: s.Addr, Connections: 64, Timeout: 100 * time.Millisecond}
		if strings.Contains(name, "rueidis") {
			over.Rueidis, _ = limiters.NewRueidis(s.Addr)
		}
		for _, l := range append(limiters.Rategen(), limiters.Peers()...) {
			if l.Name == name {
				take, err := l.New(over, limiters.Room)
				if err != nil {
					panic(err)
				}
				return take
			}
		}
		panic(name)
	}
	takes, names = append(takes, mk(limiters.ScriptFloor)), append(names, "floor")
	if *lim == "" {
		client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: s.Addr, PoolSize: 64}))
		sha, _ := client.ScriptLoad(context.Background(), "redis.call('TIME')\nredis.call('GET', KEYS[1])\nredis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])\nreturn 1").Result()
		conn := client.Conn()
		takes = append(takes, func(ctx context.Context, key string) load.Answer {
			if conn.EvalSha(ctx, sha, []string{"floor:" + key}, time.Now().UnixMicro(), 3600000).Err() != nil {
				return load.Failed
			}
			return load.Admitted
		})
		names = append(names, "sticky floor")
		takes = append(takes, func(ctx context.Context, key string) load.Answer {
			c, cancel := context.WithTimeoutCause(context.Background(), 100*time.Millisecond, os.ErrInvalid)
			defer cancel()
			if client.EvalSha(c, sha, []string{"floor:" + key}, time.Now().UnixMicro(), 3600000).Err() != nil {
				return load.Failed
			}
			return load.Admitted
		})
		names = append(names, "floor with timeout ctx")
	}
	for _, v := range strings.Split(*vars, ";") {
		for _, kv := range strings.Split(v, ",") {
			if k, val, ok := strings.Cut(kv, "="); ok {
				os.Setenv(k, val)
			}
		}
		takes, names = append(takes, mk(*lim)), append(names, v)
		for _, kv := range strings.Split(v, ",") {
			k, _, _ := strings.Cut(kv, "=")
			os.Unsetenv(k)
		}
	}
	for _, f := range strings.Split(*ns, ",") {
		n, _ := strconv.Atoi(f)
		c := load.Callers{Count: n, Keys: keys, Time: 1}
		trips := make([][]float64, len(takes))
		rate, p50, cpu := make([][]float64, len(takes)), make([][]float64, len(takes)), make([][]float64, len(takes))
		for range *rounds {
			for _, i := range rand.Perm(len(takes)) {
				c.Run(context.Background(), *d/4, takes[i])
				b0, _ := s.Calls(context.Background(), "evalsha")
				p := c.Run(context.Background(), *d, takes[i])
				dec := float64(p.Decisions())
				b1, _ := s.Calls(context.Background(), "evalsha")
				trips[i] = append(trips[i], float64(b1-b0)/dec)
				rate[i] = append(rate[i], dec/p.Elapsed.Seconds())
				p50[i] = append(p50[i], p.Latency.Quantile(.5).Seconds()*1e6)
				cpu[i] = append(cpu[i], p.CPU.Seconds()*1e6/dec)
			}
		}
		for i := range takes {
			var rr, pp []float64
			for j := range rate[i] {
				rr, pp = append(rr, rate[i][j]/rate[0][j]), append(pp, p50[i][j]/p50[0][j])
			}
			fmt.Printf("n=%-3d %-34s rate: med %.2f best %.2f (%.0f)  p50: med %.2f best %.2f (%.0f)  cpu %.1f trips %.2f\n", n, names[i], q(rr, .5), q(rate[i], .85)/q(rate[0], .85), q(rate[i], .85), q(pp, .5), q(p50[i], .15)/q(p50[0], .15), q(p50[i], .15), q(cpu[i], .5), q(trips[i], .5))
		}
	}
}
