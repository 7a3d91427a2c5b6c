package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/limiters"
	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/runtime"
)

func main() {
	n := flag.Int("n", 1, "")
	name := flag.String("l", "rategen token-bucket", "")
	d := flag.Duration("d", 3*time.Second, "")
	out := flag.String("o", "", "")
	flag.Parse()
	s, err := server.StartTCP(context.Background())
	if err != nil {
		panic(err)
	}
	defer s.Stop()
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: s.Addr, PoolSize: 64}))
	over := limiters.Server{Client: client, Addr: s.Addr, Connections: 64, Timeout: 100 * time.Millisecond}
	for _, l := range append(limiters.Rategen(), limiters.Peers()...) {
		if l.Name != *name {
			continue
		}
		take, err := l.New(over, limiters.Room)
		if err != nil {
			panic(err)
		}
		keys := make([]string, 1000)
		for i := range keys {
			keys[i] = "user" + strconv.Itoa(100000+i)
		}
		c := load.Callers{Count: *n, Keys: keys, Time: 1}
		c.Run(context.Background(), 100*time.Millisecond, take)
		if *out != "" {
			f, _ := os.Create(*out)
			pprof.StartCPUProfile(f)
		}
		p := c.Run(context.Background(), *d, take)
		pprof.StopCPUProfile()
		fmt.Println(strings.TrimSpace(l.Name), p.Decisions(), "p50", p.Latency.Quantile(.5), "cpu/dec", p.CPU/time.Duration(p.Decisions()), "rate", float64(p.Decisions())/p.Elapsed.Seconds())
	}
}
