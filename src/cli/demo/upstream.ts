/** A service for the sidecars to stand in front of: one small answer to everything. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Upstream {
  readonly url: string
  /** Requests that reached it. */
  readonly requests: () => number
  close(): Promise<void>
}

export function startUpstream(): Promise<Upstream> {
  let requests = 0
  const server = createServer((request, response) => {
    requests += 1
    request.resume()
    response.setHeader('content-type', 'text/plain; charset=utf-8')
    response.end(`hello from the service behind grapevine: ${request.method} ${request.url}\n`)
  })
  server.keepAliveTimeout = 60_000
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      resolve({
        url: `http://127.0.0.1:${port}`,
        requests: () => requests,
        close: () =>
          new Promise(done => {
            server.close(() => done())
            server.closeAllConnections()
          }),
      })
    })
  })
}
