package main

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// report is one line of output.
type report map[string]any

func itoa(n int) string { return strconv.Itoa(n) }

// reporter writes reports in order from one goroutine: the library calls its delegates with its own
// locks held, so a delegate may not wait for a slow reader.
type reporter struct {
	lines chan report
	done  chan struct{}
}

func newReporter(out io.Writer) *reporter {
	r := &reporter{lines: make(chan report, 1<<14), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		buffer := bufio.NewWriter(out)
		encoder := json.NewEncoder(buffer)
		for line := range r.lines {
			if encoder.Encode(line) != nil || buffer.Flush() != nil {
				return
			}
		}
	}()
	return r
}

// send queues a report with its time; one that does not fit is dropped rather than waited for.
func (r *reporter) send(line report) {
	line["ms"] = time.Now().UnixMilli()
	select {
	case r.lines <- line:
	default:
	}
}

func (r *reporter) answer(o order, more report, err error) {
	line := report{"event": "answer", "order": o.Order, "id": o.ID, "ok": err == nil}
	if err != nil {
		line["error"] = err.Error()
	}
	for key, value := range more {
		line[key] = value
	}
	r.send(line)
}

func (r *reporter) close() {
	close(r.lines)
	<-r.done
}

func describe(node *memberlist.Node) report {
	return report{
		"name": node.Name, "address": hostPort(node), "meta": node.Meta,
		"versions": []int{int(node.PMin), int(node.PMax), int(node.PCur)},
	}
}

// payload is a queued user broadcast; each stands for itself and replaces no other.
type payload []byte

func (p payload) Message() []byte                       { return p }
func (p payload) Finished()                             {}
func (p payload) Invalidates(memberlist.Broadcast) bool { return false }
func (p payload) UniqueBroadcast()                      {}

// application is the delegate: it keeps meta and state and reports everything it is told.
type application struct {
	reports  *reporter
	cluster  atomic.Pointer[memberlist.Memberlist]
	queue    *memberlist.TransmitLimitedQueue
	received int64

	lock        sync.Mutex
	meta, state []byte
}

func newApplication(reports *reporter, meta, state []byte) *application {
	app := &application{reports: reports, meta: meta, state: state}
	app.queue = &memberlist.TransmitLimitedQueue{RetransmitMult: 4, NumNodes: app.size}
	return app
}

func (a *application) size() int {
	if list := a.cluster.Load(); list != nil {
		return list.NumMembers()
	}
	return 1
}

func (a *application) setMeta(data []byte) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.meta = data
}

func (a *application) setState(data []byte) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.state = data
}

func (a *application) NodeMeta(int) []byte {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.meta
}

func (a *application) LocalState(bool) []byte {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.state
}

func (a *application) NotifyMsg(data []byte) {
	// A flood is counted, not reported line by line.
	if atomic.AddInt64(&a.received, 1) <= 1000 {
		a.reports.send(report{"event": "message", "data": append([]byte{}, data...)})
	}
}

func (a *application) GetBroadcasts(overhead, limit int) [][]byte {
	return a.queue.GetBroadcasts(overhead, limit)
}

func (a *application) MergeRemoteState(data []byte, join bool) {
	a.reports.send(report{"event": "state", "data": append([]byte{}, data...), "join": join})
}

func (a *application) NotifyJoin(node *memberlist.Node) {
	a.reports.send(report{"event": "join", "node": describe(node)})
}

func (a *application) NotifyLeave(node *memberlist.Node) {
	a.reports.send(report{"event": "leave", "node": describe(node)})
}

func (a *application) NotifyUpdate(node *memberlist.Node) {
	a.reports.send(report{"event": "update", "node": describe(node)})
}

func (a *application) NotifyConflict(existing, other *memberlist.Node) {
	a.reports.send(report{"event": "conflict", "existing": describe(existing), "other": describe(other)})
}
