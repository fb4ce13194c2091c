/** JSON unless the client prefers HTML: the one choice of representation the admin listener has. */
import type { FastifyReply, FastifyRequest } from 'fastify'

/**
 * Does this Accept header prefer HTML to JSON? Both equally good (as for any type, or no header):
 * `otherwise`.
 */
export function prefersHtml(accept: string | undefined, otherwise = false): boolean {
  const html = quality(accept, 'text/html')
  const json = quality(accept, 'application/json')
  return html === json ? otherwise : html > json
}

/** The quality an Accept header gives a type, by its most specific range (RFC 9110 §12.5.1). */
function quality(accept: string | undefined, type: string): number {
  if (accept === undefined || accept.trim() === '') return 1
  const major = type.slice(0, type.indexOf('/'))
  const ranges = [type, `${major}/*`, '*/*']
  let best = { specificity: ranges.length, q: 0 }
  for (const item of accept.toLowerCase().split(',')) {
    const [range = '', ...parameters] = item.split(';').map(part => part.trim())
    const specificity = ranges.indexOf(range)
    if (specificity < 0 || specificity > best.specificity) continue
    const q = parameters.find(parameter => parameter.startsWith('q='))
    const value = q === undefined ? 1 : Number(q.slice(2))
    best = { specificity, q: Number.isFinite(value) ? value : 0 }
  }
  return best.q
}

/** Sends a view as JSON, or as a page that shows that JSON. */
export function sendView(
  request: FastifyRequest,
  reply: FastifyReply,
  title: string,
  view: object,
): FastifyReply {
  void reply.header('Vary', 'Accept')
  if (!prefersHtml(request.headers.accept)) return reply.send(view)
  void reply.header('Content-Security-Policy', "default-src 'none'; style-src 'unsafe-inline'")
  return reply
    .type('text/html; charset=utf-8')
    .send(
      `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escapeHtml(title)}</title>` +
        '<style>:root{color-scheme:light dark}body{font:14px/1.5 system-ui;margin:2rem}' +
        'pre{white-space:pre-wrap;overflow-wrap:anywhere}</style>' +
        `<p><a href="/">Grapevine</a></p><h1>${escapeHtml(title)}</h1>` +
        `<pre>${escapeHtml(JSON.stringify(view, null, 2))}</pre></html>`,
    )
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}
