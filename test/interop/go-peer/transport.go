package main

import (
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// lossyTransport is the library's own UDP and TCP transport that drops a share of outgoing packets, and
// reaches nobody at addresses that were cut off. Streams know no share: TCP hides loss behind delay.
type lossyTransport struct {
	*memberlist.NetTransport
	loss atomic.Uint64
	cut  atomic.Pointer[map[string]bool]
}

var errCut = errors.New("cut off by the test")

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

// setCut takes addresses with commas between them; none heals everything.
func (t *lossyTransport) setCut(addresses string) {
	cut := map[string]bool{}
	for _, address := range strings.Split(addresses, ",") {
		cut[address] = true
	}
	t.cut.Store(&cut)
}

func (t *lossyTransport) isCut(address string) bool {
	cut := t.cut.Load()
	return cut != nil && (*cut)[address]
}

func (t *lossyTransport) lost(address string) bool {
	return t.isCut(address) || rand.Float64() < math.Float64frombits(t.loss.Load())
}

func (t *lossyTransport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	if t.isCut(addr) {
		return nil, errCut
	}
	return t.NetTransport.DialTimeout(addr, timeout)
}

func (t *lossyTransport) DialAddressTimeout(addr memberlist.Address, timeout time.Duration) (net.Conn, error) {
	if t.isCut(addr.Addr) {
		return nil, errCut
	}
	return t.NetTransport.DialAddressTimeout(addr, timeout)
}

func (t *lossyTransport) WriteTo(b []byte, addr string) (time.Time, error) {
	if t.lost(addr) {
		return time.Now(), nil
	}
	return t.NetTransport.WriteTo(b, addr)
}

func (t *lossyTransport) WriteToAddress(b []byte, addr memberlist.Address) (time.Time, error) {
	if t.lost(addr.Addr) {
		return time.Now(), nil
	}
	return t.NetTransport.WriteToAddress(b, addr)
}
