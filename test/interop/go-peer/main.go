// Command go-peer is one node of the Go memberlist library under remote control: the counterpart that
// the interoperability tests put beside Grapevine's own nodes. One JSON object a line goes in (orders)
// and comes out (reports); README.md lists both.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// settings are the command line as parsed.
type settings struct {
	name, bind, label, preset, meta, state, join string
	keys                                         string
	port, protocol, retransmit                   int
	compress, verbose                            bool
	loss                                         float64
	reclaim                                      time.Duration
}

func parseFlags() settings {
	var s settings
	flag.StringVar(&s.name, "name", "", "unique node name")
	flag.StringVar(&s.bind, "bind", "127.0.0.1", "address to bind and advertise")
	flag.IntVar(&s.port, "port", 0, "port for UDP and TCP, 0 for a free one")
	flag.StringVar(&s.join, "join", "", "addresses to join at start, comma separated")
	flag.StringVar(&s.keys, "keys", "", "base64 keys, comma separated; the first one encrypts")
	flag.StringVar(&s.label, "label", "", "cluster label")
	flag.StringVar(&s.preset, "preset", "local", "lan, wan or local timing")
	flag.StringVar(&s.meta, "meta", "", "node meta")
	flag.StringVar(&s.state, "state", "", "push/pull user state")
	flag.BoolVar(&s.compress, "compress", false, "compress what is sent")
	flag.IntVar(&s.protocol, "protocol", 0, "protocol version to speak, 0 for the library's")
	flag.IntVar(&s.retransmit, "retransmit", 0, "retransmit multiplier, 0 for the preset's")
	flag.DurationVar(&s.reclaim, "reclaim", 0, "after how long a dead name may move to a new address")
	flag.Float64Var(&s.loss, "loss", 0, "share of outgoing packets to drop, 0..1")
	flag.BoolVar(&s.verbose, "log", false, "library log on stderr")
	flag.Parse()
	return s
}

func baseConfig(preset string) (*memberlist.Config, error) {
	switch preset {
	case "lan":
		return memberlist.DefaultLANConfig(), nil
	case "wan":
		return memberlist.DefaultWANConfig(), nil
	case "local":
		return memberlist.DefaultLocalConfig(), nil
	}
	return nil, errors.New("unknown preset " + preset)
}

func keyring(list string) (*memberlist.Keyring, error) {
	var keys [][]byte
	for _, text := range strings.Split(list, ",") {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return memberlist.NewKeyring(keys, keys[0])
}

// configure turns settings into the library's configuration, with a transport that can lose packets.
func configure(s settings, app *application, logger *log.Logger) (*memberlist.Config, *lossyTransport, error) {
	c, err := baseConfig(s.preset)
	if err != nil {
		return nil, nil, err
	}
	c.Name, c.Label, c.EnableCompression = s.name, s.label, s.compress
	c.BindAddr, c.BindPort, c.AdvertisePort = s.bind, s.port, s.port
	c.DeadNodeReclaimTime = s.reclaim
	c.Logger = logger
	if s.retransmit != 0 {
		c.RetransmitMult = s.retransmit
	}
	if s.protocol != 0 {
		c.ProtocolVersion = uint8(s.protocol)
	}
	if s.keys != "" {
		if c.Keyring, err = keyring(s.keys); err != nil {
			return nil, nil, err
		}
	}
	c.Delegate, c.Events, c.Conflict = app, app, app
	app.queue.RetransmitMult = c.RetransmitMult
	transport, err := newLossyTransport(c, s.loss)
	if err != nil {
		return nil, nil, err
	}
	c.Transport = transport
	c.BindPort = transport.GetAutoBindPort()
	c.AdvertisePort = c.BindPort
	c.AdvertiseAddr = s.bind
	return c, transport, nil
}

func run() error {
	s := parseFlags()
	destination := io.Discard
	if s.verbose {
		destination = os.Stderr
	}
	logger := log.New(destination, "", log.Lmicroseconds)
	reports := newReporter(os.Stdout)
	app := newApplication(reports, []byte(s.meta), []byte(s.state))
	config, transport, err := configure(s, app, logger)
	if err != nil {
		return err
	}
	list, err := memberlist.Create(config)
	if err != nil {
		return err
	}
	app.cluster.Store(list)
	reports.send(report{"event": "ready", "node": describe(list.LocalNode())})
	if s.join != "" {
		contacted, err := list.Join(strings.Split(s.join, ","))
		reports.answer(order{Order: "join"}, report{"contacted": contacted}, err)
	}
	serve(list, app, transport, reports)
	list.Shutdown()
	reports.send(report{"event": "end"})
	reports.close()
	return nil
}

// order is one line of input.
type order struct {
	Order    string   `json:"order"`
	ID       int      `json:"id"`
	To       string   `json:"to"`
	Data     []byte   `json:"data"`
	Reliable bool     `json:"reliable"`
	Count    int      `json:"count"`
	Loss     *float64 `json:"loss"`
}

// serve obeys orders until "stop" or the end of input.
func serve(list *memberlist.Memberlist, app *application, transport *lossyTransport, reports *reporter) {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<16), 1<<24)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			reports.answer(o, nil, err)
			continue
		}
		if o.Order == "stop" {
			return
		}
		if o.Order == "loss" && o.Loss != nil {
			transport.setLoss(*o.Loss)
			reports.answer(o, nil, nil)
			continue
		}
		if o.Order == "cut" {
			transport.setCut(o.To)
			reports.answer(o, nil, nil)
			continue
		}
		// Joins, leaves and meta changes wait for the network; orders behind them must not.
		go obey(o, list, app, reports)
	}
}

func obey(o order, list *memberlist.Memberlist, app *application, reports *reporter) {
	const patience = 10 * time.Second
	switch o.Order {
	case "members":
		members := []report{}
		for _, node := range list.Members() {
			members = append(members, describe(node))
		}
		reports.answer(o, report{"members": members, "health": list.GetHealthScore()}, nil)
	case "join":
		contacted, err := list.Join([]string{o.To})
		reports.answer(o, report{"contacted": contacted}, err)
	case "send":
		reports.answer(o, nil, send(o, list))
	case "meta":
		app.setMeta(o.Data)
		reports.answer(o, nil, list.UpdateNode(patience))
	case "state":
		app.setState(o.Data)
		reports.answer(o, nil, nil)
	case "broadcast":
		app.queue.QueueBroadcast(payload(o.Data))
		reports.answer(o, nil, nil)
	case "leave":
		reports.answer(o, nil, list.Leave(patience))
	case "flood":
		took, err := flood(o, list)
		reports.answer(o, report{"seconds": took.Seconds()}, err)
	case "received":
		reports.answer(o, report{"messages": atomic.LoadInt64(&app.received)}, nil)
	default:
		reports.answer(o, nil, errors.New("unknown order "+o.Order))
	}
}

func target(list *memberlist.Memberlist, name string) (*memberlist.Node, error) {
	for _, node := range list.Members() {
		if node.Name == name {
			return node, nil
		}
	}
	return nil, errors.New("no living member " + name)
}

func send(o order, list *memberlist.Memberlist) error {
	node, err := target(list, o.To)
	if err != nil {
		return err
	}
	if o.Reliable {
		return list.SendReliable(node, o.Data)
	}
	return list.SendBestEffort(node, o.Data)
}

// flood sends Count best-effort messages as fast as the library can: the sender's half of a benchmark.
func flood(o order, list *memberlist.Memberlist) (time.Duration, error) {
	node, err := target(list, o.To)
	if err != nil {
		return 0, err
	}
	started := time.Now()
	for i := 0; i < o.Count; i++ {
		if err := list.SendBestEffort(node, o.Data); err != nil {
			return 0, err
		}
	}
	return time.Since(started), nil
}

func main() {
	if err := run(); err != nil {
		log.SetFlags(0)
		log.SetPrefix("go-peer: ")
		log.Fatal(err)
	}
}

// hostPort is a member's address as one text.
func hostPort(node *memberlist.Node) string {
	return net.JoinHostPort(node.Addr.String(), itoa(int(node.Port)))
}
