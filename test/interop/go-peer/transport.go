package main

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// lossyTransport is the library's own UDP and TCP transport that drops a share of outgoing packets.
// Streams pass: TCP hides loss behind delay, and a test that wants a split uses network namespaces.
type lossyTransport struct {
	*memberlist.NetTransport
	loss atomic.Uint64
}

func newLossyTransport(c *memberlist.Config, loss float64) (*lossyTransport, error) {
	inner, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{
		BindAddrs: []string{c.BindAddr}, BindPort: c.BindPort, Logger: c.Logger,
	})
	if err != nil {
		return nil, err
	}
	t := &lossyTransport{NetTransport: inner}
	t.setLoss(loss)
	return t, nil
}

func (t *lossyTransport) setLoss(share float64) { t.loss.Store(math.Float64bits(share)) }

func (t *lossyTransport) lost() bool {
	return rand.Float64() < math.Float64frombits(t.loss.Load())
}

func (t *lossyTransport) WriteTo(b []byte, addr string) (time.Time, error) {
	if t.lost() {
		return time.Now(), nil
	}
	return t.NetTransport.WriteTo(b, addr)
}

func (t *lossyTransport) WriteToAddress(b []byte, addr memberlist.Address) (time.Time, error) {
	if t.lost() {
		return time.Now(), nil
	}
	return t.NetTransport.WriteToAddress(b, addr)
}
