/**
 * The status page of the admin listener: one self-contained document that asks the JSON endpoints
 * beside it. Everything it shows is put in as text, never as markup.
 */
import { createHash } from 'node:crypto'

const style = `
:root { color-scheme: light dark; --line: #8884; --bar: #7c4dbe; --bad: #c62828; --good: #2e7d32; }
@media (prefers-color-scheme: dark) { :root { --bar: #b794f6; --bad: #ef5350; --good: #66bb6a; } }
body { font: 14px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 1.5rem; max-width: 72rem; }
h1 { font-size: 1.4rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line) }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
code, textarea, input { font-family: ui-monospace, monospace; font-size: .95em }
.bar { background: var(--line); height: .5rem; width: 8rem; border-radius: 3px }
.bar > i { display: block; height: 100%; background: var(--bar); border-radius: 3px }
.alive { color: var(--good) } .suspect, .dead { color: var(--bad) } .left { opacity: .6 }
#banner { color: var(--bad); font-weight: 600 }
form { display: grid; gap: .5rem; grid-template-columns: max-content 1fr; max-width: 40rem }
form button { grid-column: 2; justify-self: start; padding: .3rem 1rem }
pre { white-space: pre-wrap; overflow-wrap: anywhere }
`

const script = `
const at = id => document.getElementById(id)
const cell = (value, kind) => {
  const td = document.createElement('td')
  if (value instanceof Node) td.append(value)
  else td.textContent = value === null || value === undefined ? '' : String(value)
  if (kind) td.className = kind
  return td
}
const fill = (id, rows, empty) => {
  const body = at(id)
  body.replaceChildren(...rows.map(cells => {
    const tr = document.createElement('tr')
    tr.append(...cells)
    return tr
  }))
  if (rows.length === 0) {
    const td = cell(empty, 'left')
    td.colSpan = 9
    const tr = document.createElement('tr')
    tr.append(td)
    body.append(tr)
  }
}
const bar = share => {
  const outer = document.createElement('div')
  const inner = document.createElement('i')
  outer.className = 'bar'
  outer.title = Math.round(share * 100) + ' % used'
  inner.style.width = Math.round(Math.max(0, Math.min(1, share)) * 100) + '%'
  outer.append(inner)
  return outer
}
const ask = async (path, options) => {
  const response = await fetch(path, { headers: { accept: 'application/json' }, ...options })
  const body = await response.json()
  if (!response.ok) throw new Error(body.detail || response.statusText)
  return body
}
const total = (decisions, result) =>
  Object.values(decisions[result] || {}).reduce((sum, value) => sum + value, 0)
const seconds = ms => (ms / 1000).toFixed(1) + ' s'
const refresh = async () => {
  try {
    const [state, ring, top] = await Promise.all([
      ask('/'), ask('/members'), ask('/limits/top?n=10&by=' + at('by').value),
    ])
    at('node').textContent = state.node + ', version ' + state.version + ', ' + state.ready
    at('banner').textContent = [
      state.lastReloadSuccessful ? '' : 'The rules were refused when they were last read; see the log.',
      state.configAgreed ? '' : 'The pods have different rules (own hash ' + state.configHash + ').',
    ].join(' ').trim()
    fill('members', ring.members.map(member => [
      cell(member.name + (member.self ? ' (this pod)' : '')), cell(member.address),
      cell(member.state, member.state), cell(member.meta ? member.meta.version : 'not Grapevine'),
      cell(member.meta ? member.meta.configHash : ''),
      cell(member.meta && member.meta.draining ? 'draining' : ''),
    ]), 'no members')
    fill('rules', state.rules.map(rule => [
      cell(rule.name), cell(rule.limit), cell(rule.algorithm), cell(rule.mode),
      cell(rule.keys, 'n'), cell(total(rule.decisions, 'allowed'), 'n'),
      cell(total(rule.decisions, 'denied'), 'n'),
      cell(total(rule.decisions, 'shadow_denied'), 'n'),
      cell(rule.estimatedOvershootRatio.toFixed(3), 'n'),
    ]), 'no rules are loaded')
    fill('keys', top.keys.map(key => [
      cell(key.rule), cell(key.key ? key.key.join(' + ') : key.hash),
      cell(bar(key.capacity > 0 ? 1 - key.remaining / key.capacity : 0)),
      cell(key.remaining + ' of ' + key.capacity, 'n'), cell(seconds(key.resetAfterMs), 'n'),
      cell(key.hits, 'n'), cell(key.denied, 'n'), cell(1 + key.peers.length - (key.own ? 0 : 1), 'n'),
    ]), 'no keys yet')
  } catch (error) {
    at('banner').textContent = 'This page cannot be brought up to date: ' + error.message
  }
}
const headersOf = text => Object.fromEntries(text.split('\\n').filter(line => line.includes(':'))
  .map(line => [line.slice(0, line.indexOf(':')).trim(), line.slice(line.indexOf(':') + 1).trim()]))
at('explain').addEventListener('submit', async event => {
  event.preventDefault()
  const request = { method: at('method').value, path: at('path').value, ip: at('ip').value,
    headers: headersOf(at('headers').value) }
  try {
    const answer = await ask('/explain', { method: 'POST', body: JSON.stringify(request) })
    at('answer').textContent = JSON.stringify(answer, null, 2)
  } catch (error) {
    at('answer').textContent = error.message
  }
})
at('by').addEventListener('change', refresh)
refresh()
setInterval(refresh, 2000)
`

const heads = (names: readonly string[], numbersFrom: number): string =>
  names
    .map((name, index) => `<th scope="col"${index >= numbersFrom ? ' class="n"' : ''}>${name}</th>`)
    .join('')

const table = (id: string, names: readonly string[], numbersFrom = names.length): string =>
  `<div class="scroll"><table><thead><tr>${heads(names, numbersFrom)}</tr></thead>` +
  `<tbody id="${id}"></tbody></table></div>`

export const statusPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Grapevine</title>
<style>${style}</style>
</head>
<body>
<h1>Grapevine</h1>
<div id="node"></div>
<p id="banner" role="status"></p>
<h2>Members</h2>
${table('members', ['Name', 'Address', 'State', 'Version', 'Rules hash', ''])}
<h2>Rules</h2>
${table(
  'rules',
  ['Rule', 'Limit', 'Algorithm', 'Mode', 'Keys', 'Allowed', 'Denied', 'Shadow', 'Overshoot'],
  4,
)}
<h2>Top keys by <select id="by" aria-label="Order of keys">
<option value="denied">denials</option><option value="hits">hits</option></select></h2>
${table('keys', ['Rule', 'Key', 'Used', 'Left', 'Full in', 'Hits', 'Denied', 'Pods'], 3)}
<h2>Explain a request</h2>
<form id="explain">
<label for="method">Method</label><input id="method" value="GET" required>
<label for="path">Path</label><input id="path" value="/" required>
<label for="ip">Client address</label><input id="ip" value="192.0.2.1" required>
<label for="headers">Headers</label><textarea id="headers" rows="3" placeholder="x-api-key: …">
</textarea>
<button>Explain</button>
</form>
<pre id="answer" aria-live="polite"></pre>
<script>${script}</script>
</body>
</html>
`

const hashOf = (text: string): string =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Only the page's own script and style run, and it talks to nobody but its own listener. */
export const statusPageSecurityPolicy = [
  "default-src 'none'",
  `script-src ${hashOf(script)}`,
  // The bars have their width in a style attribute.
  "style-src 'unsafe-inline'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')
